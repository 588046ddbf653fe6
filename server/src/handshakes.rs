//! Handshakes: the one thing that strangers can have the server work for. What it has to compute for one, a signature above
//! all, takes a thousand times as long as a read; so threads of their own do it, which stand back where others want the
//! processors. Those who have a place begin; they are as many as the memory has room for, and each address has its turn.

use std::future::poll_fn;
use std::io;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::line::{First, Line};
use crate::peer::Origin;
use crate::silent::SilentOnes;
use crate::stats::Stats;

/// What a client may send before it is known to speak TLS as it should, in bytes: a greeting of a few hundred, and for a
/// server that asks for them the certificates.
pub(crate) const MOST_OF_HANDSHAKE: usize = 32 * 1024;

/// The name of the threads.
const THREADS: &str = "boltkv-hello";
/// How far they stand back: of a processor that others want as well they get a tenth.
const NICE: i32 = 10;
/// For so long a handshake that was begun is in nobody's way. One that stands longer makes room for others, if there are any.
const UNDISTURBED: Duration = Duration::from_secs(1);
/// So many of them a thread has, few enough to be through with all in that time.
const UNDISTURBED_EACH: usize = 256;

/// Those that are under way, and the threads that do them.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// `None` when it is over.
    runtime: Option<Runtime>,
    /// Who may begin, and is not disturbed for a while.
    beginning: Arc<Line>,
    /// For whom something is done now: a thread for each.
    turns: Arc<Line>,
    /// All that were begun; with one more than there may be, one goes.
    begun: Arc<SilentOnes>,
}

impl Handshakes {
    /// Starts so many threads, for so many handshakes at a time.
    ///
    /// # Errors
    /// The system's, which has no threads.
    pub(crate) fn start(threads: NonZeroUsize, most: usize, stats: Arc<Stats>) -> io::Result<Self> {
        let threads = threads.get();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).thread_name(THREADS).enable_time().on_thread_start(|| {
            // Where that cannot be, they are threads like all others.
            let _ = rustix::process::nice(NICE);
        });
        let undisturbed = most.min(threads * UNDISTURBED_EACH);
        Ok(Self {
            runtime: Some(builder.build()?),
            beginning: Line::new(undisturbed, undisturbed.div_ceil(2), First::Newest),
            turns: Line::new(threads, threads, First::Oldest),
            begun: Arc::new(SilentOnes::new(most, stats)),
        })
    }

    /// Encrypts what comes from there, when it is its turn, unless `end` comes first.
    ///
    /// # Errors
    /// The socket's, or what is wrong with what the client sends.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        socket: Rewound<S>,
        config: Arc<ServerConfig>,
        origin: Origin,
        end: CancellationToken,
    ) -> io::Result<TlsStream<Rewound<S>>> {
        let runtime = self.runtime.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let place = self.beginning.place(origin).await;
        let _begun = self.begun.add(origin, end.clone());
        let turns = Arc::clone(&self.turns);
        let accepted = runtime.spawn(async move {
            let mut accept = pin!(in_turn(socket, config, turns, origin));
            let done = timeout(UNDISTURBED, &mut accept).await;
            drop(place);
            let mut stream = if let Ok(done) = done { done } else { accept.await }?;
            stream.get_mut().0.left = usize::MAX;
            Ok(stream)
        });
        tokio::select! {
            () = end.cancelled() => Err(io::ErrorKind::ConnectionAborted.into()),
            // It ends with whoever waits for it.
            accepted = AbortOnDropHandle::new(accepted) => accepted.map_err(io::Error::other)?,
        }
    }
}

impl Drop for Handshakes {
    fn drop(&mut self) {
        // The last who shares it may be in another runtime, where nobody may wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Encrypts, a step at a time: each when it is its turn, as soon as there is something to be done.
async fn in_turn<S: AsyncRead + AsyncWrite + Unpin>(
    socket: Rewound<S>,
    config: Arc<ServerConfig>,
    turns: Arc<Line>,
    origin: Origin,
) -> io::Result<TlsStream<Rewound<S>>> {
    let mut accept = TlsAcceptor::from(config).accept(socket);
    loop {
        let turn = turns.place(origin).await;
        let done = poll_fn(|cx| Poll::Ready(Pin::new(&mut accept).poll(cx))).await;
        drop(turn);
        if let Poll::Ready(done) = done {
            return done;
        }
        woken().await;
    }
}

/// Waits until this task is woken.
async fn woken() {
    let mut asleep = false;
    poll_fn(|_| {
        asleep = !asleep;
        if asleep { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

/// A socket of which some was read already, and before the handshake is done no more than a little.
#[derive(Debug)]
pub(crate) struct Rewound<S> {
    first: BytesMut,
    /// So many bytes are read and no more.
    left: usize,
    pub(crate) inner: S,
}

impl<S> Rewound<S> {
    /// `first` was read of it.
    pub(crate) const fn new(first: BytesMut, inner: S) -> Self {
        Self { first, left: MOST_OF_HANDSHAKE, inner }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the handshake is too long")));
        }
        let before = buffer.filled().len();
        if this.first.is_empty() {
            ready!(Pin::new(&mut this.inner).poll_read(cx, buffer))?;
        } else {
            let len = this.first.len().min(buffer.remaining());
            buffer.put_slice(&this.first.split_to(len));
        }
        this.left = this.left.saturating_sub(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::Waker;

    use rustls::crypto::ring::default_provider;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use tokio::io::{AsyncWriteExt as _, duplex};
    use tokio::task::yield_now;

    use super::*;

    /// Has no certificate for anybody, and notes which thread has asked for one.
    #[derive(Debug, Default)]
    struct NotesThread(Mutex<Option<String>>);

    impl ResolvesServerCert for NotesThread {
        fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            *self.0.lock().unwrap() = std::thread::current().name().map(str::to_owned);
            None
        }
    }

    fn config(resolver: &Arc<NotesThread>) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        Arc::new(builder.with_cert_resolver(Arc::clone(resolver) as _))
    }

    /// The first thing that a client says.
    fn greeting() -> Vec<u8> {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let client = builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
        let mut greeting = Vec::new();
        client.write_tls(&mut greeting).unwrap();
        greeting
    }

    fn start(most: usize) -> Handshakes {
        Handshakes::start(NonZeroUsize::MIN, most, Arc::new(Stats::new())).unwrap()
    }

    // Promises: ops-tls-line.
    #[tokio::test]
    async fn what_a_handshake_takes_is_done_by_threads_of_its_own() {
        let (noted, all) = (Arc::new(NotesThread::default()), start(1));
        let (here, mut there) = duplex(64 * 1024);
        let socket = Rewound::new(BytesMut::new(), here);
        let accepting = all.accept(socket, config(&noted), Origin::Local(None), CancellationToken::new());
        let (accepted, ()) = tokio::join!(accepting, async {
            // It comes in parts.
            for part in greeting().chunks(100) {
                there.write_all(part).await.unwrap();
                yield_now().await;
            }
        });
        assert_eq!(accepted.unwrap_err().kind(), io::ErrorKind::InvalidData, "there is no certificate");
        assert_eq!(noted.0.lock().unwrap().as_deref(), Some(THREADS));
    }

    // Promises: ops-tls-line, ops-tls-stalled.
    #[tokio::test]
    async fn one_that_stands_makes_room_for_others_but_not_at_once() {
        let (noted, all) = (Arc::new(NotesThread::default()), start(2));
        let ends = [(); 3].map(|()| CancellationToken::new());
        let (sockets, _kept): (Vec<_>, Vec<_>) = ends.iter().map(|_| duplex(64)).unzip();
        let mut standing: Vec<_> = ends
            .iter()
            .zip(sockets)
            .map(|(end, socket)| {
                let socket = Rewound::new(BytesMut::new(), socket);
                Box::pin(all.accept(socket, config(&noted), Origin::Local(None), end.clone()))
            })
            .collect();
        for one in &mut standing {
            assert!(is_pending(one.as_mut()));
        }
        assert!(!ends.iter().any(CancellationToken::is_cancelled), "there is no place for the third, so it waits");
        let [first, second, third] = &mut standing[..] else { panic!("there are three") };
        let ended = tokio::select! { ended = first => ended, _ = second => panic!("it came later"), _ = third => panic!("it came last") };
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert!(ends[0].is_cancelled());
        // Whoever is ended otherwise gives his place back, too.
        ends[1].cancel();
        assert!(standing[1].as_mut().await.is_err());
    }

    /// Looks at it once.
    fn is_pending(one: Pin<&mut impl Future>) -> bool {
        one.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }
}

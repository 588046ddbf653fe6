//! The connections that are open: who each is, and what it does, for whoever looks after the server.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::counters::Command;
use crate::peer::Peer;
use crate::rows::{Row, page, row};

/// Characters of what a client calls itself that are kept.
const NAME: usize = 64;

/// The bytes of a row are more than these.
const LEAST_ROW: usize = 128;

/// All connections, by the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    last_id: AtomicU64,
    all: Mutex<BTreeMap<u64, Arc<Client>>>,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: Peer,
    opened: Instant,
    end: CancellationToken,
    is_killed: AtomicBool,
    said: Mutex<Said>,
    /// The number of the last command, and one; 0 before the first.
    command: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    /// When bytes last came, in milliseconds after it was opened.
    heard_ms: AtomicU64,
}

/// What a client says of itself.
#[derive(Debug, Default, Clone)]
pub(crate) struct Said {
    /// Which dialect; empty before it has spoken.
    pub(crate) dialect: &'static str,
    pub(crate) encrypted: bool,
    pub(crate) name: Option<Box<str>>,
    /// The name of the token that let it in.
    pub(crate) token: Option<Box<str>>,
}

/// A connection is listed until this is dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    client: Arc<Client>,
    all: Arc<Clients>,
}

/// What a connection is at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doing {
    /// Since it was opened.
    pub(crate) age: Duration,
    /// Since bytes last came.
    pub(crate) idle: Duration,
    /// The last command; empty before the first.
    pub(crate) command: &'static str,
}

/// What a client has done by now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) answered: u64,
    pub(crate) last: Option<Command>,
    pub(crate) in_flight: usize,
    pub(crate) received: u64,
    pub(crate) heard: Instant,
}

impl Clients {
    /// A connection came, which `end` ends.
    pub(crate) fn add(self: &Arc<Self>, peer: Peer, end: CancellationToken) -> Listed {
        let client = Arc::new(Client {
            id: self.last_id.fetch_add(1, Relaxed) + 1,
            peer,
            opened: Instant::now(),
            end,
            is_killed: AtomicBool::new(false),
            said: Mutex::default(),
            command: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            heard_ms: AtomicU64::new(0),
        });
        self.lock().insert(client.id, Arc::clone(&client));
        Listed { client, all: Arc::clone(self) }
    }

    /// Ends a connection. `false` if there is none of this id.
    pub(crate) fn kill(&self, id: u64) -> bool {
        let Some(client) = self.lock().get(&id).cloned() else { return false };
        client.is_killed.store(true, Relaxed);
        client.end.cancel();
        true
    }

    /// Those whose ids are higher, a row each, as many as take `most` bytes.
    pub(crate) fn rows(&self, after: u64, most: usize) -> Vec<Row> {
        // The list is copied first: whoever connects meanwhile does not wait for it to be written.
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let some: Vec<_> = self.lock().range(behind).take(most / LEAST_ROW + 1).map(|(_, it)| Arc::clone(it)).collect();
        let now = Instant::now();
        page(some.iter().map(|client| client.row(now)), most)
    }

    /// All of them but those that were killed: they go as soon as their tasks notice, and whoever asks after that must not
    /// find them.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().filter(|client| !client.is_killed()).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        // Nothing that holds it can panic half way.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Notes what it has done. Only its own connection does, so that nothing is waited for.
    pub(crate) fn note(&self, done: &Done) {
        if done.answered > 0 {
            self.requests.store(self.requests.load(Relaxed) + done.answered, Relaxed);
        }
        if let Some(last) = done.last {
            self.command.store(last.index() as u64 + 1, Relaxed);
        }
        self.in_flight.store(done.in_flight as u64, Relaxed);
        self.received.store(done.received, Relaxed);
        self.heard_ms.store(millis(done.heard, self.opened), Relaxed);
    }

    /// Notes how many bytes it has taken by now, as above.
    pub(crate) fn has_taken(&self, bytes: u64) {
        self.sent.store(bytes, Relaxed);
    }

    /// Changes what is known of it.
    pub(crate) fn says(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.lock());
    }

    /// What it calls itself: as it came, but for what does not print.
    pub(crate) fn calls_itself(&self, name: &[u8]) {
        let name: String = name.escape_ascii().take(NAME).map(char::from).collect();
        self.says(|said| said.name = (!name.is_empty()).then(|| name.into()));
    }

    pub(crate) fn said(&self) -> Said {
        self.lock().clone()
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Relaxed)
    }

    pub(crate) fn doing(&self) -> Doing {
        self.doing_at(Instant::now())
    }

    fn doing_at(&self, now: Instant) -> Doing {
        let age = now.saturating_duration_since(self.opened);
        let idle = age.saturating_sub(Duration::from_millis(self.heard_ms.load(Relaxed)));
        let last = usize::try_from(self.command.load(Relaxed)).unwrap_or(0).checked_sub(1);
        let command = last.and_then(|index| Command::all().find(|command| command.index() == index));
        Doing { age, idle, command: command.map_or("", Command::name) }
    }

    fn row(&self, now: Instant) -> Row {
        let said = self.said();
        let number = |value: &AtomicU64| value.load(Relaxed).to_string();
        let Doing { age, idle, command } = self.doing_at(now);
        let seconds = |time: Duration| format!("{}.{:03}", time.as_secs(), time.subsec_millis());
        row([
            ("id", self.id.to_string()),
            ("peer", self.peer.to_string()),
            ("dialect", said.dialect.to_owned()),
            ("tls", u8::from(said.encrypted).to_string()),
            ("token", said.token.map(String::from).unwrap_or_default()),
            ("name", said.name.map(String::from).unwrap_or_default()),
            ("age_seconds", seconds(age)),
            ("idle_seconds", seconds(idle)),
            ("command", command.to_owned()),
            ("requests", number(&self.requests)),
            ("in_flight", number(&self.in_flight)),
            ("received_bytes", number(&self.received)),
            ("sent_bytes", number(&self.sent)),
        ])
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        // Nothing that holds it can panic half way.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(later: Instant, earlier: Instant) -> u64 {
    u64::try_from(later.saturating_duration_since(earlier).as_millis()).unwrap_or(u64::MAX)
}

impl Listed {
    /// The connection, for who is to know of it.
    pub(crate) fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client)
    }
}

impl std::ops::Deref for Listed {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.all.lock().remove(&self.client.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(row: &Row, name: &str) -> String {
        let found = row.iter().find(|(field, _)| field == name.as_bytes()).unwrap();
        String::from_utf8(found.1.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn connections_are_listed_as_long_as_they_are_there_and_each_can_be_ended() {
        let clients = Arc::new(Clients::default());
        let ends = [CancellationToken::new(), CancellationToken::new()];
        let [one, two] = ends.clone().map(|end| clients.add(Peer::Unix(Some(7)), end));
        two.calls_itself(b"a\nb");
        let heard = Instant::now();
        two.note(&Done { answered: 3, last: Some(Command::OTHER), in_flight: 1, received: 8, heard });
        two.has_taken(9);
        let rows = clients.rows(0, usize::MAX);
        assert_eq!(rows.iter().map(|row| field(row, "id")).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((field(&rows[0], "command"), field(&rows[0], "name")), (String::new(), String::new()));
        let of_two = ["command", "name", "requests", "in_flight", "received_bytes", "sent_bytes"];
        assert_eq!(of_two.map(|name| field(&rows[1], name)), ["other", "a\\nb", "3", "1", "8", "9"]);
        assert!(clients.kill(2) && !clients.kill(3));
        assert!(ends[1].is_cancelled() && !ends[0].is_cancelled());
        assert!(two.is_killed() && !one.is_killed());
        assert_eq!(clients.all().iter().map(|client| client.id).collect::<Vec<_>>(), [1]);
        drop(one);
        assert_eq!(clients.rows(0, usize::MAX).len(), 1);
        assert!(clients.rows(2, usize::MAX).is_empty());
        assert!(!clients.kill(1));
    }
}

//! Connections that send many requests at once are served by threads of their own, too.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;

use boltkv_server::{Config, Error, Listen, Server};
use boltkv_storage::Options;
use common::text::Text;
use common::{PATIENCE, TestServer};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

/// Sends lines at once; answers the first line of each reply.
fn burst(client: &mut Text, lines: &[String]) -> Vec<String> {
    client.send(lines.join("\r\n") + "\r\n");
    lines.iter().map(|_| client.line()).collect()
}

/// Sends bursts until it has certainly become a habit.
fn many_bursts(client: &mut Text) {
    let pings = vec!["PING".to_owned(); 50];
    for _ in 0..100 {
        assert!(burst(client, &pings).iter().all(|answer| answer == "PONG"));
    }
}

/// Does this on a runtime of one thread.
fn on_one_thread(what: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(what);
}

/// Serves everybody on the runtime that this is called on, with one thread for bursts beside it: where, what stops the server, and
/// how it ends.
async fn serve_from_here() -> (SocketAddr, oneshot::Sender<()>, JoinHandle<Result<(), Error>>) {
    let mut config = Config::for_db(Options::new().open_in_memory().unwrap());
    config.listen = vec![Listen::Tcp(([127, 0, 0, 1], 0).into())];
    config.limits.burst_threads = 1;
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(server.run(async { drop(stopped.await) }));
    (address, stop, serving)
}

#[test]
fn they_are_served_while_the_others_threads_are_held_up() {
    on_one_thread(async {
        let (address, stop, serving) = serve_from_here().await;
        let (has_a_habit, habit) = oneshot::channel();
        let (tell, told) = channel();
        let client = std::thread::spawn(move || {
            let mut client = Text::connect(address);
            many_bursts(&mut client);
            has_a_habit.send(()).unwrap();
            many_bursts(&mut client);
            // Alone, too: it stays where it is.
            tell.send(client.ask("PING")).unwrap();
            client
        });
        habit.await.unwrap();
        // The only thread that serves all others does nothing else until then.
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "PONG");
        // It is waited for, and told to end, like all.
        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
        let mut client = client.join().unwrap();
        assert_eq!(client.try_line(), None);
    });
}

#[test]
fn one_of_eight_that_wait_for_each_answer_is_served_there_too() {
    on_one_thread(async {
        let (address, stop, serving) = serve_from_here().await;
        let (have_come, all_have) = oneshot::channel();
        let (ask_once_more, asked_once_more) = channel::<()>();
        let (tell, told) = channel();
        let clients = std::thread::spawn(move || {
            let mut clients: Vec<_> = (0..8).map(|_| Text::connect(address)).collect();
            for client in &mut clients {
                assert!((0..200).all(|_| client.ask("PING") == "PONG"));
            }
            have_come.send(()).unwrap();
            asked_once_more.recv().unwrap();
            std::thread::scope(|scope| {
                for (number, client) in clients.iter_mut().enumerate() {
                    let tell = tell.clone();
                    scope.spawn(move || tell.send((number, client.ask("PING"))).unwrap());
                }
            });
        });
        all_have.await.unwrap();
        ask_once_more.send(()).unwrap();
        // The only thread that serves all others does nothing else until then.
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), (7, "PONG".to_owned()));
        assert!(told.try_recv().is_err(), "the others wait");
        spawn_blocking(|| clients.join()).await.unwrap().unwrap();
        assert!(told.iter().all(|(_, answer)| answer == "PONG"), "they are answered then");
        stop.send(()).unwrap();
        serving.await.unwrap().unwrap();
    });
}

#[test]
fn all_that_a_connection_has_goes_with_it() {
    let server = TestServer::start_with(|config| {
        config.limits.burst_threads = 2;
        config.timeouts.idle = Duration::from_millis(700);
    });
    let mut clients: Vec<_> = (0..6).map(|_| server.text()).collect();
    std::thread::scope(|scope| {
        for (c, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for round in 0..60 {
                    let lines = |n: usize| {
                        let key = format!("{c}-{n}");
                        [format!("SET {key} {round}"), format!("GET {key}"), "GET nothing".to_owned()]
                    };
                    let lines: Vec<_> = (0..10).flat_map(lines).collect();
                    let round = round.to_string();
                    let expected = ["OK", &round, "(nil)"];
                    assert_eq!(burst(client, &lines), expected.repeat(10), "round {round}");
                }
            });
        }
    });
    // Its deadlines, too: one that is idle is closed.
    for client in &mut clients {
        assert_eq!(client.try_line(), None);
    }
    server.assert_serving();
}

//! Slow requests as spans, sent to a collector (feature `otel`).
#![cfg(feature = "otel")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::boltkv;
use common::server::{PATIENCE, Server};
use serde_json::Value;

/// A collector, and what is posted to it: paths and bodies.
fn collector() -> (String, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut socket = BufReader::new(socket);
            let mut line = String::new();
            while socket.read_line(&mut line).is_ok_and(|len| len > 0) {
                let path = line.split(' ').nth(1).unwrap().to_owned();
                let mut len = 0;
                loop {
                    line.clear();
                    socket.read_line(&mut line).unwrap();
                    if line.trim().is_empty() {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        len = value.trim().parse().unwrap();
                    }
                }
                let mut body = vec![0; len];
                socket.read_exact(&mut body).unwrap();
                socket.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                if tell.send((path, serde_json::from_slice(&body).unwrap())).is_err() {
                    return;
                }
                line.clear();
            }
        }
    });
    (address, told)
}

fn serve(folder: &std::path::Path, endpoint: &str) -> Server {
    let mut command = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--slow", "0", "--db", folder.join("a.db")]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    Server::spawn(&mut command)
}

#[expect(clippy::disallowed_methods, reason = "spans have the calendar's times")]
fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

// Promises: ops-telemetry.
#[test]
fn slow_requests_are_sent_as_spans_and_nothing_that_was_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let (endpoint, told) = collector();
    let before = now();
    let server = serve(folder.path(), &endpoint);
    server.run(["set", "secret-key", "secret-value"]).done();
    assert_eq!(server.text("GET secret-key\nGET missing\n"), "secret-value\n(nil)\n");
    server.run(["delete", "missing"]).failed(1);
    server.run(["incr", "secret-key"]).failed(1);
    let stopped = server.stop();
    assert_eq!((stopped.code, &*stopped.stderr), (Some(0), ""));
    let bodies: Vec<_> = told.try_iter().collect();
    assert!(!bodies.is_empty() && bodies.iter().all(|(path, _)| path == "/v1/traces"), "{bodies:?}");
    let text = format!("{bodies:?}");
    assert!(!text.contains("secret") && text.contains("boltkv"), "{text}");
    let mut names = Vec::new();
    for (_, body) in &bodies {
        for of in body["resourceSpans"].as_array().unwrap() {
            let service = of["resource"]["attributes"].as_array().unwrap();
            assert!(service.iter().any(|it| it["key"] == "service.name" && it["value"]["stringValue"] == "boltkv"));
            let spans =
                of["scopeSpans"].as_array().unwrap().iter().flat_map(|scope| scope["spans"].as_array().unwrap());
            for span in spans {
                let time = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
                let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
                assert!(before <= start + 1_000_000 && start <= end && end <= now(), "{span}");
                let failed = span["status"]["code"].as_u64() == Some(2);
                names.push((span["name"].as_str().unwrap().to_owned(), failed));
            }
        }
    }
    for expected in [("SET", false), ("GET", true), ("INCR", true)] {
        assert!(names.iter().any(|(name, failed)| (name.as_str(), *failed) == expected), "{expected:?}: {names:?}");
    }
}

// Promises: ops-telemetry.
#[test]
fn a_collector_that_never_answers_costs_spans_and_no_requests() {
    let folder = tempfile::tempdir().unwrap();
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = serve(folder.path(), &format!("http://{}", deaf.local_addr().unwrap()));
    let lines = "SET k v\n".repeat(3_000);
    assert_eq!(server.text(&lines), "OK\n".repeat(3_000));
    let stopping = std::time::Instant::now();
    assert_eq!(server.stop().code, Some(0));
    assert!(stopping.elapsed() < PATIENCE + Duration::from_secs(10));
}

//! The boltkv server: a bolt file, served over TCP.
//!
//! ```no_run
//! # async fn example() -> Result<(), boltkv_server::Error> {
//! use boltkv_server::{Config, Server};
//! let server = Server::bind(Config::for_file("boltkv.db")).await?;
//! server.run(std::future::pending()).await
//! # }
//! ```
//!
//! # The way of a request
//! ```text
//! bytes → dialect → Request → executor ─ read  → a snapshot → reply
//!                                      └ write → queue → the writer → one transaction for many → reply
//! ```
//! | module | what it holds |
//! | --- | --- |
//! | `server` | start and stop |
//! | `config` | what it is told before |
//! | `open` | the file: opened and closed |
//! | `listener` | accepting connections, up to a limit |
//! | `dialect` | the first byte; what is refused |
//! | `session` | a connection: bytes to requests, replies to bytes, and how much one client may ask for at a time |
//! | `executor` | the one door to what requests do |
//! | `commands` | what a request does, a file for each kind |
//! | `cold` | where reads wait for the disk |
//! | `writer` | the one thread that changes the database, in groups |
//! | `access` | who may do what: tokens and their rights |
//! | `tls` | encryption, and who has to use it |
//! | `handshakes`, `line` | what encrypting takes: by which threads, and in which order |
//! | `memory` | the budget of all connections for what is large |
//! | `bursts`, `lone` | threads for connections that send many requests at once, and for one that writes alone |
//! | `silent` | the connections that have said nothing yet, or not who they are |
//! | `sockets` | where it listens |
//! | `peer` | who is at the other end |
//! | `health` | whether it can still write |
//! | `shared` | what all connections share |
//! | `stats`, `counters`, `since` | what is counted, now and then and for every request; from when on INFO counts |
//! | `clients`, `slow_log` | who is connected, and what took long |
//! | `admin` | the address for those who look after the server: is it alive, is it ready, its metrics |
//! | `metrics` | everything that is measured, as one table |
//!
//! Nothing that a client sends makes the server panic, or hold memory that is not bounded by its [`Limits`]: the memory of
//! all connections for what is large, and a little for each. Keys and values
//! never appear in logs.

mod access;
mod admin;
mod bursts;
mod clients;
mod cold;
mod commands;
mod config;
mod counters;
mod dialect;
mod error;
mod executor;
mod handshakes;
mod health;
mod line;
mod listener;
mod lone;
mod memory;
mod metrics;
mod open;
mod peer;
mod rows;
mod server;
mod session;
mod shared;
mod silent;
mod since;
mod slow_log;
mod sockets;
mod stats;
mod tls;
mod writer;

pub use access::{AccessHandle, Grant, Level, ParseRightError, Proof, Right};
pub use commands::{Clock, KeptTime};
pub use config::{Config, DEFAULT_PORT, Database, Limits, Listen, OnWriteFailure, Timeouts};
pub use error::Error;
pub use server::Server;
pub use tls::{Tls, TlsError, TlsHandle};

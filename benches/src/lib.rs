//! boltkv's engine measured beside every peer, on works that others chose. `CONTRIBUTING.md` tells how it is called.
//!
//! # Rooms
//! - `data`: keys and values, from their number alone; `work`: what is done with them, as data
//! - `records`: a user's record, and six ways to store it
//! - `engines`: every engine behind one trait, one a file; `contestant`: an engine and its options
//! - `worker`: does one work on one engine; `runner`: starts a worker for each, and watches it
//! - `works`: the table and the experiments; `goal`: what is read off the table, and what it should come to
//! - `measure`: does works by everyone; `results`: what it found, as a file; `print` and `report`: for people
//! - `shell`: a server measured from the shell; `servers`: several, over the network, by `boltkv bench`'s generator
//! - `daemon`: a server that was started here; `process`: the memory and the end of what was started
//! - `cold`: a server on a file that is not in memory; `crowds`: one beside crowds and floods
//! - `go/`: the worker for Go's engines, on the same data and works

pub mod cold;
pub mod contestant;
pub mod crowds;
pub mod daemon;
pub mod data;
pub mod engines;
pub mod goal;
pub mod goprogram;
mod group;
pub mod machine;
pub mod measure;
pub mod print;
pub mod process;
pub mod records;
pub mod report;
pub mod results;
pub mod runner;
pub mod servers;
pub mod shell;
pub mod stats;
pub mod versions;
pub mod work;
pub mod worker;
pub mod works;

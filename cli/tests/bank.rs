//! A bank: money that transactions move between accounts is never more or less, in whatever is seen of it. Snapshots, single
//! transactions, watches, backups and what is restored between them all have it, over a server that is killed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use boltkv_client::{Bucket, ChangeKind, Client, TransactionResult};
use boltkv_storage::Options;
use common::run;
use common::server::Server;

const ACCOUNTS: u64 = 20;
const EACH: i64 = 100;
const ALL: i64 = 2_000;
/// Transfers of each teller in each of the server's lives.
const TRANSFERS: u64 = 150;
const TELLERS: u64 = 6;
const LIVES: u64 = 3;

fn name(account: u64) -> String {
    format!("{:02}", account % ACCOUNTS)
}

fn number(value: &[u8]) -> i64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

/// What all accounts of a file have.
fn sum_of_file(file: &Path) -> i64 {
    let db = Options::new().read_only(true).open(file).unwrap();
    let tx = db.begin().unwrap();
    let bank = tx.bucket("bank").unwrap();
    bank.iter().map(|entry| number(entry.unwrap().1.unwrap())).sum()
}

/// Moves money until the server is gone, or enough was moved.
async fn teller(client: Client, mut random: u64) {
    let bank = client.bucket("bank").unwrap();
    for _ in 0..TRANSFERS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (from, to) = (name(random >> 33), name(random >> 45));
        let amount = i64::try_from((random >> 57) % 9).unwrap();
        let moved = client.transaction().increment(&bank, &from, -amount).increment(&bank, &to, amount).commit().await;
        if moved.is_err() {
            return;
        }
    }
}

/// Looks at all accounts, in a snapshot and in one transaction, until it is over or the server is gone; how often.
async fn auditor(client: Client, is_over: Arc<AtomicBool>) -> u64 {
    let bank = client.bucket("bank").unwrap();
    let mut looks = 0;
    while !is_over.load(Ordering::Relaxed) {
        let Ok(snapshot) = client.snapshot(Duration::from_secs(30)).await else { break };
        let mut by_snapshot = 0;
        for account in 0..ACCOUNTS {
            let Ok(value) = snapshot.get(&bank, name(account)).await else { return looks };
            by_snapshot += number(&value.unwrap());
        }
        let Ok(scanned) = client.transaction().scan(bank.scan()).commit().await else { return looks };
        let [TransactionResult::Entries(entries)] = &scanned.results[..] else { panic!("{scanned:?}") };
        let by_transaction: i64 = entries.iter().map(|entry| number(&entry.value)).sum();
        assert_eq!((by_snapshot, by_transaction), (ALL, ALL));
        looks += 1;
    }
    looks
}

/// Follows what is told from the beginning on, until the server is gone; how many transactions.
async fn follower(bank: Bucket) -> usize {
    let mut watching = bank.watch().from_oldest().patience(Duration::ZERO).stream().await.unwrap();
    let (mut accounts, mut told) = (BTreeMap::new(), 0);
    while let Some(Ok(watched)) = watching.next().await {
        for change in watched.changes {
            if change.kind == ChangeKind::Put {
                accounts.insert(change.key.to_vec(), number(&change.value));
            }
        }
        // The bank was opened in one transaction.
        assert!(accounts.is_empty() || accounts.values().sum::<i64>() == ALL, "{accounts:?}");
        told += usize::from(!accounts.is_empty());
    }
    told
}

/// One life of the server, which is killed; with a backup while the tellers are at work. What the auditors and the follower saw.
async fn life(db: &Path, backup: &Path, random: u64) -> (u64, usize) {
    let server = Server::start_with(db, ["--journal-keep", "1GiB"]);
    let client = Client::connect(server.addr()).await.unwrap();
    let bank = client.bucket("bank").unwrap();
    if bank.create().await.is_ok() {
        let all =
            (0..ACCOUNTS).fold(client.transaction(), |tx, account| tx.set(&bank, name(account), EACH.to_string()));
        all.commit().await.unwrap();
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let followed = tokio::spawn(follower(bank.clone()));
    let audits: Vec<_> = (0..2).map(|_| tokio::spawn(auditor(client.clone(), Arc::clone(&is_over)))).collect();
    let mut tellers = Vec::new();
    for teller_number in 0..TELLERS {
        let client = Client::connect(server.addr()).await.unwrap();
        tellers.push(tokio::spawn(teller(client, random.rotate_left(u32::try_from(9 * teller_number).unwrap()))));
    }
    server.run(args!["backup", backup]).done();
    assert_eq!(sum_of_file(backup), ALL);
    // Some are done by now, some are not.
    tellers.pop().unwrap().await.unwrap();
    server.kill();
    is_over.store(true, Ordering::Relaxed);
    let mut looks = 0;
    for audit in audits {
        looks += audit.await.unwrap();
    }
    for teller in tellers {
        teller.await.unwrap();
    }
    (looks, followed.await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_is_never_made_or_lost_whoever_looks_and_whenever() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("bank.db");
    let random = RandomState::new().hash_one(0);
    let (mut looks, mut told) = (0, 0);
    for life_number in 0..LIVES {
        let backup = folder.path().join(format!("backup-{life_number}.db"));
        let seen = life(&db, &backup, random.rotate_left(u32::try_from(20 * life_number).unwrap())).await;
        (looks, told) = (looks + seen.0, told + seen.1);
    }
    assert!(looks > 0 && told > 0, "{looks} looks, {told} transactions");
    run(args!["file", "journal", &db, "--apply"]).done();
    assert_eq!(sum_of_file(&db), ALL);
    run(args!["file", "check", &db]).done();

    // Any moment since the first backup.
    let (backup, journal) = (folder.path().join("backup-0.db"), folder.path().join("bank.db-journal"));
    let line = args!["restore", "--backup", backup, "--journal", journal].to_vec();
    let listed = run(line.iter().cloned().chain(["--list".into(), "--json".into()])).done_text();
    let transaction =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["transaction"]["txid"].as_u64();
    let moments: Vec<u64> = listed.lines().filter_map(transaction).collect();
    assert!(moments.len() > 20, "{listed}");
    for (number, txid) in moments.iter().step_by(moments.len() / 10).enumerate() {
        let restored = folder.path().join(format!("restored-{number}.db"));
        let to = args!["--to", txid.to_string(), &restored].to_vec();
        run(line.iter().cloned().chain(to)).done();
        assert_eq!(sum_of_file(&restored), ALL, "at transaction {txid}, seed {random:#x}");
    }
}

//! A check by several threads says what a check by one says, of sound files and of damaged ones, and tells how far it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::random::Random;
use crate::common::small_file::{PAGE, SmallFile, odd_numbers};
use boltkv_storage::{CheckOptions, Db, Options, PageType, Problem};
use std::sync::Mutex;

fn problems(db: &Db, threads: usize) -> Vec<Problem> {
    db.begin().unwrap().check_with(&CheckOptions::new().threads(threads)).unwrap()
}

/// Many buckets of few entries, few buckets of many, and buckets in buckets: work that cannot be parted in advance.
fn uneven() -> Db {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| {
        for number in 0..500 {
            tx.create_bucket(format!("small {number:04}"))?.put("key", [0; 300])?;
        }
        let mut large = tx.create_bucket("large")?;
        for number in 0..20_000_u32 {
            large.put(number.to_be_bytes(), [1; 40])?;
        }
        let mut path = vec!["way"];
        tx.create_bucket("way")?;
        for name in ["down", "to", "the", "end"] {
            tx.bucket_mut_path(&path)?.create_bucket(name)?.put("key", [0; 300])?;
            path.push(name);
        }
        let mut end = tx.bucket_mut_path(&path)?;
        (0..5_000_u32).try_for_each(|number| end.put(number.to_be_bytes(), [2; 20]))
    })
    .unwrap();
    db
}

#[test]
fn a_sound_file_is_sound_for_any_number_of_threads() {
    let db = uneven();
    for threads in [1, 2, 3, 16] {
        for _ in 0..5 {
            assert_eq!(problems(&db, threads), [], "{threads} threads");
        }
    }
}

#[test]
fn what_is_wrong_is_the_same_for_any_number_of_threads_and_in_the_order_of_the_pages() {
    let small = SmallFile::new();
    let numbers = odd_numbers(small.pages());
    let mut damaged = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut bytes = small.sound.clone();
        for _ in 0..=random.below(4) {
            let page = 2 + random.below(small.pages() - 2);
            let within = [16, 128, PAGE][random.below(3)];
            let at = page * PAGE + random.below(within / 8) * 8;
            bytes[at..at + 8].copy_from_slice(&numbers[random.below(numbers.len())].to_le_bytes());
        }
        let file = small.write("damaged.db", &bytes);
        let Ok(db) = Options::new().read_only(true).open(&file) else { continue };
        let alone = problems(&db, 1);
        assert!(alone.is_sorted_by_key(|problem| problem.page), "{alone:?}");
        damaged += usize::from(!alone.is_empty());
        for threads in [2, 5] {
            assert_eq!(problems(&db, threads), alone, "{threads} threads, damage {seed}");
        }
    }
    assert!(damaged > 100, "only {damaged} files were damaged: that says little");
}

#[test]
fn progress_ends_with_the_number_of_pages_in_use() {
    let db = uneven();
    let tx = db.begin().unwrap();
    let pages = tx.page_infos().unwrap().map(Result::unwrap);
    let in_use = pages.filter(|page| matches!(page.page_type, PageType::Leaf | PageType::Branch));
    let in_trees: u64 = in_use.map(|page| 1 + u64::from(page.overflow)).sum();
    for threads in [1, 4] {
        let told = Mutex::new(Vec::new());
        let tell = |pages| told.lock().unwrap().push(pages);
        tx.check_with(&CheckOptions::new().threads(threads).progress(&tell)).unwrap();
        let mut told = told.into_inner().unwrap();
        if threads == 1 {
            assert!(told.is_sorted());
        }
        told.sort_unstable();
        assert_eq!(told.last(), Some(&in_trees), "{threads} threads");
    }
}

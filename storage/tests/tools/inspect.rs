//! Figures of buckets, the structure of a database and its pages are what Go's bbolt says of the same file, and the exact
//! figures that its own tests ask for.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::assert_same_dump;
use crate::common::generator::Generator;
use crate::common::model::{Model, hex};
use crate::common::peer::Peer;
use crate::common::setup::Setup;
use boltkv_storage::tools::Surgery;
use boltkv_storage::{Bucket, BucketStats, Db, Error, Fill, Options, PageType, Tx};
use std::fmt::Write as _;
use std::path::Path;

/// bbolt's page sizes: those of the machines that it has figures for.
const PAGE_SIZES: [u32; 3] = [4096, 16_384, 65_536];

fn in_memory(page_size: u32) -> Db {
    Options::new().page_size(page_size).open_in_memory().unwrap()
}

fn stats(db: &Db, bucket: &str) -> BucketStats {
    db.begin().unwrap().bucket(bucket).unwrap().stats().unwrap()
}

/// The figures in the order of bbolt's `BucketStats`.
fn figures(stats: &BucketStats) -> [u64; 13] {
    [
        stats.branch_pages,
        stats.branch_overflow_pages,
        stats.leaf_pages,
        stats.leaf_overflow_pages,
        stats.keys,
        stats.depth,
        stats.branch_alloc,
        stats.branch_inuse,
        stats.leaf_alloc,
        stats.leaf_inuse,
        stats.buckets,
        stats.inline_buckets,
        stats.inline_bucket_inuse,
    ]
}

/// One commit: some entries, with bbolt's way of filling pages.
fn put_all(db: &Db, bucket: &str, fill: f64, entries: impl IntoIterator<Item = (String, String)>) {
    let mut tx = db.begin_mut().unwrap();
    let mut bucket = tx.create_bucket_if_not_exists(bucket).unwrap();
    bucket.set_fill(Fill::Percent(fill));
    for (key, value) in entries {
        bucket.put(key, value).unwrap();
    }
    tx.commit().unwrap();
}

#[test]
fn many_small_values_and_a_large_one_have_bbolts_figures() {
    let expected: [[u64; 8]; 3] = [
        [1, 7, 10, 501, 2, 4096, 149, 69_632],
        [1, 3, 10, 501, 2, 16_384, 73, 212_992],
        [1, 2, 10, 501, 2, 65_536, 54, 786_432],
    ];
    for (page_size, expected) in PAGE_SIZES.into_iter().zip(expected) {
        let db = in_memory(page_size);
        for number in 0..500 {
            put_all(&db, "woojits", 0.5, [(format!("{number:03}"), number.to_string())]);
        }
        let large = 10 * page_size as usize + 17;
        put_all(&db, "woojits", 0.5, [("really-big-value".into(), "*".repeat(large))]);
        let [branches, leaves, leaf_overflow, keys, depth, branch_alloc, branch_inuse, leaf_alloc] = expected;
        let leaf_inuse = leaves * 16 + 501 * 16 + 500 * 3 + 16 + 10 + 2 * 90 + 3 * 400 + large as u64;
        assert_eq!(
            figures(&stats(&db, "woojits")),
            [
                branches,
                0,
                leaves,
                leaf_overflow,
                keys,
                depth,
                branch_alloc,
                branch_inuse,
                leaf_alloc,
                leaf_inuse,
                1,
                0,
                0
            ]
        );
    }
}

#[test]
fn a_hundred_thousand_values_have_bbolts_figures() {
    let expected = [
        [13, 0, 1196, 0, 100_000, 3, 53_248, 25_257, 4_898_816, 2_596_916, 1, 0, 0],
        [1, 0, 292, 0, 100_000, 2, 16_384, 6094, 4_784_128, 2_582_452, 1, 0, 0],
        [1, 0, 73, 0, 100_000, 2, 65_536, 1534, 4_784_128, 2_578_948, 1, 0, 0],
    ];
    for (page_size, expected) in PAGE_SIZES.into_iter().zip(expected) {
        let db = in_memory(page_size);
        for commit in 0..100 {
            put_all(&db, "widgets", 0.5, (commit * 1000..(commit + 1) * 1000).map(|n| (n.to_string(), n.to_string())));
        }
        assert_eq!(figures(&stats(&db, "widgets")), expected, "page size {page_size}");
    }
}

#[boltkv_needs::program("go")]
#[test]
fn values_put_in_random_order_at_fill_0_9_have_bbolts_figures() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let db = in_memory(4096);
    for commit in peer.run(["random-fill-order"]).lines() {
        let numbers = commit.split_whitespace();
        put_all(&db, "woojits", 0.9, numbers.map(|n| (format!("{n}000000000000000"), "0000000000".into())));
    }
    let stats = stats(&db, "woojits");
    assert_eq!(stats.keys, 100_000);
    assert_eq!([stats.branch_pages, stats.branch_overflow_pages], [98, 0]);
    assert_eq!([stats.branch_inuse, stats.branch_alloc], [130_984, 401_408]);
    assert_eq!([stats.leaf_pages, stats.leaf_overflow_pages], [3412, 0]);
    assert_eq!([stats.leaf_inuse, stats.leaf_alloc], [4_742_482, 13_975_552]);
}

#[test]
fn an_inline_bucket_has_no_pages_of_its_own() {
    let db = in_memory(4096);
    put_all(&db, "small", 0.5, [("foo".into(), "bar".into())]);
    put_all(&db, "empty", 0.5, []);
    assert_eq!(figures(&stats(&db, "small")), [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 16 + 16 + 6]);
    assert_eq!(figures(&stats(&db, "empty")), [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 16]);
}

#[test]
fn the_figures_of_nested_buckets_are_added_and_their_depths_too() {
    let db = in_memory(4096);
    db.update(|tx| {
        let mut foo = tx.create_bucket("foo")?;
        for number in 0..100 {
            foo.put(format!("{number:02}"), format!("{number:02}"))?;
        }
        let mut bar = foo.create_bucket("bar")?;
        for number in 0..10 {
            bar.put(number.to_string(), number.to_string())?;
        }
        let mut baz = bar.create_bucket("baz")?;
        for number in 0..10 {
            baz.put(number.to_string(), number.to_string())?;
        }
        Ok::<_, boltkv_storage::Error>(())
    })
    .unwrap();
    let foo = 16 + 101 * 16 + 100 * 2 + 100 * 2 + 3 + 16;
    let bar = 16 + 11 * 16 + 10 + 10 + 3 + 16;
    let baz = 16 + 10 * 16 + 10 + 10;
    assert_eq!(figures(&stats(&db, "foo")), [0, 0, 2, 0, 122, 3, 0, 0, 8192, foo + bar + baz, 3, 1, baz]);
}

#[test]
fn in_a_write_transaction_figures_and_structure_are_those_of_its_changes() {
    let db = in_memory(4096);
    let mut tx = db.begin_mut().unwrap();
    let mut outer = tx.create_bucket("outer").unwrap();
    for number in 0..1000_u32 {
        outer.put(number.to_be_bytes(), "value").unwrap();
    }
    outer.create_bucket("inner").unwrap().put("k", "v").unwrap();
    let stats = outer.as_bucket().stats().unwrap();
    assert_eq!((stats.keys, stats.buckets, stats.depth), (1002, 2, 2));
    assert_eq!(outer.count().unwrap(), 1001);
    let found = outer.as_bucket().inspect().unwrap();
    let found: Vec<_> = found.iter().map(|bucket| (bucket.depth, &bucket.name[..], bucket.values)).collect();
    assert_eq!(found, [(0, &b"root"[..], 1000), (1, b"inner", 1)]);
}

#[test]
fn buckets_are_listed_depth_first_with_their_values() {
    let db = in_memory(4096);
    let tree: [(&[&str], u64); 10] = [
        (&["b1"], 3),
        (&["b1", "b1_1"], 6),
        (&["b1", "b1_2"], 7),
        (&["b1", "b1_3"], 8),
        (&["b2"], 4),
        (&["b2", "b2_1"], 10),
        (&["b2", "b2_2"], 12),
        (&["b2", "b2_2", "b2_2_1"], 2),
        (&["b2", "b2_2", "b2_2_2"], 3),
        (&["b2", "b2_3"], 11),
    ];
    let mut tx = db.begin_mut().unwrap();
    for (path, values) in tree {
        let (name, above) = path.split_last().unwrap();
        let mut bucket = if above.is_empty() {
            tx.create_bucket(name).unwrap()
        } else {
            let mut parent = tx.bucket_mut_path(above).unwrap();
            parent.create_bucket(name).unwrap();
            tx.bucket_mut_path(path).unwrap()
        };
        for number in 0..values {
            bucket.put(format!("{number:02}"), "v").unwrap();
        }
    }
    tx.commit().unwrap();
    let found = db.begin().unwrap().inspect().unwrap();
    let found: Vec<_> = found.iter().map(|b| (b.depth, std::str::from_utf8(&b.name).unwrap(), b.values)).collect();
    let mut expected = vec![(0, "root", 0)];
    expected.extend(tree.map(|(path, values)| (path.len(), *path.last().unwrap(), values)));
    assert_eq!(found, expected);
}

#[test]
fn the_structure_tells_pages_sequence_and_which_bucket_is_the_last() {
    let db = in_memory(4096);
    db.update(|tx| {
        let mut outer = tx.create_bucket("a")?;
        outer.create_bucket("inline")?.put("k", "v")?;
        let mut large = outer.create_bucket("large")?;
        large.set_sequence(7)?;
        large.put("k", vec![1; 3 * 4096])?;
        (0..100_u8).try_for_each(|key| large.put([key], vec![0; 400]))?;
        tx.create_bucket("z").map(drop)
    })
    .unwrap();
    let tx = db.begin().unwrap();
    let found: Vec<_> = tx.structure().map(Result::unwrap).collect();
    let of = |name: &str| found.iter().find(|bucket| bucket.name == name.as_bytes()).unwrap();
    let shape = |name: &str| (of(name).buckets, of(name).pages, of(name).sequence, of(name).is_last);
    assert_eq!(shape("root"), (2, 1, 0, true));
    assert_eq!(shape("a"), (2, 1, 0, false));
    assert_eq!(shape("inline"), (0, 0, 0, false));
    assert_eq!(shape("z"), (0, 0, 0, true));
    let stats = tx.bucket_path(["a", "large"]).unwrap().stats().unwrap();
    let pages = stats.branch_pages + stats.leaf_pages + stats.leaf_overflow_pages;
    assert_eq!(shape("large"), (0, pages, 7, true));
    assert!(pages > 10);
}

#[test]
fn figures_of_some_top_level_buckets_are_the_sum_of_theirs() {
    let db = in_memory(4096);
    for (name, keys) in [("ab", 10), ("abc", 1000), ("b", 200)] {
        put_all(&db, name, 0.5, (0..keys).map(|key| (format!("{key:05}"), "value".repeat(20))));
    }
    let tx = db.begin().unwrap();
    let (count, both) = tx.bucket_stats("ab", &|_| ()).unwrap();
    let (one, other) = (stats(&db, "ab"), stats(&db, "abc"));
    assert_eq!((count, both.keys, both.depth), (2, 1010, one.depth.max(other.depth)));
    assert_eq!(both.leaf_alloc, one.leaf_alloc + other.leaf_alloc);
    assert_eq!(both.leaf_inuse, one.leaf_inuse + other.leaf_inuse);
    assert_eq!(tx.bucket_stats("", &|_| ()).unwrap().1.keys, 1210);
    assert_eq!(tx.bucket_stats("x", &|_| ()).unwrap(), (0, BucketStats::default()));
}

#[test]
fn who_waits_is_told_how_much_was_read() {
    let db = in_memory(4096);
    put_all(&db, "b", 0.5, (0..1000).map(|key| (format!("{key:05}"), "value".repeat(20))));
    db.update(|tx| tx.create_bucket("z")?.create_bucket("inner").map(drop)).unwrap();
    let tx = db.begin().unwrap();
    let said = std::cell::RefCell::new(Vec::new());
    let told = |bytes| said.borrow_mut().push(bytes);
    let (_, stats) = tx.bucket_stats("", &told).unwrap();
    assert!(said.take().is_sorted_by(|one, next| one < next));
    tx.structure().progress(&told).for_each(|bucket| drop(bucket.unwrap()));
    let told_last = said.take().last().copied().unwrap();
    assert!(told_last > stats.leaf_alloc + stats.branch_alloc && told_last < tx.size(), "{told_last}");
}

#[test]
fn a_page_is_looked_up_by_its_number() {
    let db = in_memory(4096);
    db.update(|tx| tx.create_bucket("b")?.put("large", vec![1; 10_000])).unwrap();
    db.update(|tx| tx.delete_bucket("b")).unwrap();
    let tx = db.begin().unwrap();
    let mark = tx.size() / 4096;
    assert_eq!(tx.page_info(0).unwrap().unwrap().page_type, PageType::Meta);
    assert_eq!(tx.page_info(mark).unwrap(), None);
    assert_eq!(tx.page_info(u64::MAX).unwrap(), None);
    let all: Vec<_> = tx.page_infos().unwrap().map(Result::unwrap).collect();
    assert!(all.iter().filter(|page| page.page_type == PageType::Free).count() >= 3, "{all:?}");
    for page in all {
        assert_eq!(tx.page_info(page.id).unwrap(), Some(page));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn figures_structure_and_pages_are_those_that_bbolt_reports() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for kind in ["inline", "nested", "overflow", "empty-values", "sequences", "mixed"] {
        for page_size in [1024, 4096] {
            let file = folder.path().join(format!("{kind}-{page_size}"));
            peer.make(kind, &file, &[format!("--page-size={page_size}")]);
            assert_same_look(&file, peer);
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn what_was_written_here_looks_the_same_to_bbolt() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (seed, page_size) in [(7, 1024), (8, 4096)] {
        let file = folder.path().join(page_size.to_string());
        let trace = Generator::new(seed, Model::default()).trace(30, 80);
        trace.replay(&file, &Setup { fill: None, ..Setup::with_page_size(page_size) }).unwrap();
        assert_same_look(&file, peer);
    }
}

fn assert_same_look(file: &Path, peer: &Peer) {
    let db = Options::new().read_only(true).open(file).unwrap();
    let here = look(&db.begin().unwrap());
    assert_same_dump(&here, &peer.run(["look", file.to_str().unwrap()]), &file.display().to_string());
}

/// What the Go program's `look` prints.
fn look(tx: &Tx) -> String {
    let mut out = String::new();
    tx.for_each(|name, bucket| {
        look_at_stats(&mut out, &hex(name), bucket);
        Ok::<_, boltkv_storage::Error>(())
    })
    .unwrap();
    for bucket in tx.inspect().unwrap() {
        writeln!(out, "bucket {} {} {}", bucket.depth, hex(&bucket.name), bucket.values).unwrap();
    }
    for page in tx.page_infos().unwrap() {
        let page = page.unwrap();
        let kind = match page.page_type {
            PageType::Meta => "meta",
            PageType::Freelist => "freelist",
            PageType::Branch => "branch",
            PageType::Leaf => "leaf",
            PageType::Free => "free",
            _ => "unknown",
        };
        writeln!(out, "page {} {kind} {} {}", page.id, page.count, page.overflow).unwrap();
    }
    out
}

fn look_at_stats(out: &mut String, path: &str, bucket: Bucket<'_>) {
    write!(out, "stats {path}").unwrap();
    for figure in figures(&bucket.stats().unwrap()) {
        write!(out, " {figure}").unwrap();
    }
    out.push('\n');
    bucket
        .for_each_bucket(|name, inner| {
            look_at_stats(out, &format!("{path}/{}", hex(name)), inner);
            Ok::<_, boltkv_storage::Error>(())
        })
        .unwrap();
}

#[test]
fn the_way_to_a_key_leads_through_its_buckets_to_the_leaf_that_holds_it() {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    db.update(|tx| {
        for name in ["first", "second"] {
            let mut bucket = tx.create_bucket(name)?;
            (0..200_u32).try_for_each(|number| bucket.put(number.to_be_bytes(), [7; 40]))?;
            bucket.put("shared", name)?;
            bucket.create_bucket("small")?.put("shared", name)?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    let tx = db.begin().unwrap();
    let way = |path: &[&str]| tx.pages_to(path).unwrap().unwrap();
    let top = way(&["first"]);
    for name in ["first", "second"] {
        let root = tx.bucket(name).unwrap().root_page().unwrap();
        let pages = way(&[name, "shared"]);
        assert_eq!(pages[..=top.len()], [&top[..], &[root]].concat());
        let types: Vec<PageType> =
            pages[top.len()..].iter().map(|&id| tx.page_info(id).unwrap().unwrap().page_type).collect();
        assert_eq!(types, [PageType::Branch, PageType::Leaf]);
        // What lies inline is on the page of its bucket's entry.
        assert_eq!(way(&[name, "small", "shared"]), way(&[name, "small"]));
    }
    assert_ne!(way(&["first", "shared"]).last(), way(&["second", "shared"]).last());
    assert_eq!(tx.pages_to(["first", "missing"]).unwrap(), None);
    assert!(matches!(tx.pages_to(["missing", "key"]), Err(Error::BucketNotFound { .. })));
    assert!(matches!(tx.pages_to(["first", "shared", "key"]), Err(Error::IncompatibleValue { .. })));
    assert!(matches!(tx.pages_to([""; 0]), Err(Error::KeyRequired)));
}

#[test]
fn a_way_that_goes_in_circles_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (sound, circle) = (folder.path().join("sound.db"), folder.path().join("circle.db"));
    let db = Options::new().page_size(1024).open(&sound).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..200_u32).try_for_each(|number| bucket.put(number.to_be_bytes(), [7; 40]))
    })
    .unwrap();
    let path = [&b"b"[..], &0_u32.to_be_bytes()];
    let way = db.begin().unwrap().pages_to(path).unwrap().unwrap();
    drop(db);
    // The leaf becomes a branch that leads to itself.
    let [.., branch, leaf] = way[..] else { panic!("{way:?}") };
    Surgery::new(&sound, &circle).copy_page(branch, leaf).unwrap();
    let db = Options::new().read_only(true).open(&circle).unwrap();
    let found = db.begin().unwrap().pages_to(path);
    assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
}

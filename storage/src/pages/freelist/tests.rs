use super::*;

fn run(start: Pgid, len: u64) -> Run {
    Run { start, len }
}

fn pins(readers: &[TxId]) -> Pins {
    Pins { readers: readers.to_vec(), keepers: [None; 2] }
}

fn list(ids: &[Pgid]) -> Freelist {
    Freelist::load(2, ids.iter().copied(), 1000).unwrap()
}

#[test]
fn the_lowest_run_that_fits_is_taken() {
    let mut free = list(&[3, 5, 6, 9, 10, 11, 12]);
    assert_eq!(free.free_mut().take(2), Some(5));
    assert_eq!(free.free_mut().take(3), Some(9));
    assert_eq!(free.free_mut().take(2), None);
    assert_eq!(free.free_mut().take(1), Some(3));
    assert_eq!(free.free_mut().take(1), Some(12));
    assert_eq!(free.free_pages(), 0);
    free.give_back(&[run(9, 3), run(3, 1)]);
    assert_eq!((free.free_pages(), free.free_mut().take(3)), (4, Some(9)));
}

#[test]
fn single_pages_are_taken_in_rounds_below_what_the_highest_are_taken_of() {
    let mut free = list(&[3, 5, 6, 9, 20, 21, 22, 23]);
    assert_eq!(free.take_highest(2), Some(22));
    assert_eq!([1; 3].map(|len| free.take_next(len)), [3, 5, 6].map(Some));
    free.give_back(&[run(4, 1)]);
    assert_eq!([1; 3].map(|len| free.take_next(len)), [9, 20, 21].map(Some));
    free.give_back(&[run(20, 4)]);
    free.committed(1, &[], &[], false, false);
    assert_eq!([1; 3].map(|len| free.take_next(len)), [4, 20, 21].map(Some), "a new round, then what is above");
    assert_eq!((free.take_next(2), free.take_next(1)), (Some(22), None));
}

#[test]
fn what_was_written_since_the_last_sync_is_written_over_first() {
    let mut free = list(&[3, 30, 50]);
    let keeper = Pins { readers: Vec::new(), keepers: [Some(4), None] };
    free.synced(4);
    free.committed(5, &[run(20, 1), run(21, 1), run(40, 2)], &[run(10, 1)], true, false);
    free.committed(6, &[], &[run(20, 1), run(21, 1), run(40, 2)], true, false);
    free.release(keeper.clone()).unwrap();
    assert_eq!((free.waiting_pages(), free.free_pages()), (1, 7), "the file has page 10");
    let taken = [free.take_dirty(), free.take_dirty()];
    assert_eq!(taken.into_iter().flatten().sum::<Pgid>(), 20 + 21);
    assert_eq!(free.take_dirty(), Some(3), "no other single page: in rounds");
    free.give_back_dirty(&[20]);
    assert_eq!([1; 5].map(|len| free.take_next(len)), [20, 30, 40, 41, 50].map(Some));
    assert_eq!(free.take_dirty(), None, "somebody else has taken it");
    free.give_back_dirty(&[3, 20]);
    free.synced(6);
    assert_eq!(free.take_dirty(), Some(3), "all of it is on the disk");
}

#[test]
fn a_run_waits_for_every_reader_that_can_reach_it_and_for_no_other() {
    let mut free = Freelist::default();
    free.committed(5, &[run(20, 1)], &[], true, false);
    free.committed(7, &[], &[run(20, 1), run(30, 1)], true, false);
    // Reader 4 is older than page 20: it holds page 30 only, whose birth is not known.
    free.release(pins(&[4])).unwrap();
    assert_eq!((free.free_mut().take(1), free.free_mut().take(1)), (Some(20), None));
    free.release(pins(&[7])).unwrap();
    assert_eq!(free.free_mut().take(1), Some(30));
    assert_eq!(free.waiting_pages(), 0);
}

#[test]
fn what_a_reader_has_kept_is_free_in_steps_or_when_it_is_needed() {
    let many = 3 * STEP as u64;
    let held = || {
        let mut free = Freelist::default();
        for txid in 0..many {
            free.committed(9, &[], &[run(20 + 2 * txid, 1)], true, false);
        }
        free.release(pins(&[8])).unwrap();
        assert_eq!((free.free_pages(), free.waiting_pages()), (0, many));
        free.release(pins(&[])).unwrap();
        free
    };
    let mut free = held();
    let first_step = free.free_pages();
    assert!((1..=STEP as u64).contains(&first_step), "{first_step}");
    assert_eq!(free.waiting_pages(), many - first_step);
    free.list(&[], &[]).unwrap();
    assert_eq!(free.listed().len() as u64, many, "the file's list has all of them");
    while free.waiting_pages() > 0 {
        let before = free.waiting_pages();
        free.release(pins(&[])).unwrap();
        assert!(free.waiting_pages() < before);
    }
    assert_eq!(free.free_pages(), many);

    let mut free = held();
    for _ in 0..many {
        assert!(free.find(|free| free.take_next(1)).unwrap().is_some(), "the file must not grow yet");
    }
    assert_eq!(free.find(|free| free.take_next(1)).unwrap(), None);

    let mut free = held();
    free.release_rest().unwrap();
    assert_eq!((free.free_pages(), free.waiting_pages()), (many, 0));
}

#[test]
fn a_run_that_is_left_for_later_waits_for_the_readers_that_there_are_then() {
    let mut free = Freelist::default();
    for page in 0..2 * STEP as u64 {
        free.committed(9, &[], &[run(20 + 2 * page, 1)], true, false);
    }
    // The older of two readers stays, and reaches them all.
    free.release(pins(&[5, 8])).unwrap();
    free.release(pins(&[5])).unwrap();
    free.release_rest().unwrap();
    assert_eq!(free.free_pages(), 0);
    free.release(pins(&[])).unwrap();
    free.release_rest().unwrap();
    assert_eq!(free.waiting_pages(), 0);
}

#[test]
fn a_run_that_two_readers_reach_waits_for_both() {
    let mut free = Freelist::default();
    free.committed(9, &[], &[run(20, 4)], true, false);
    for readers in [&[5, 8][..], &[5], &[5, 9]] {
        free.release(pins(readers)).unwrap();
        assert_eq!(free.free_pages(), 0, "{readers:?}");
    }
    free.release(pins(&[9])).unwrap();
    assert_eq!(free.free_pages(), 4);
}

#[test]
fn a_run_is_kept_by_the_readers_between_its_birth_and_its_end() {
    // First page, pages, allocated by, freed by.
    let runs =
        [(3, 1, 100, 200), (4, 1, 100, 125), (5, 1, 125, 150), (6, 1, 125, 175), (7, 2, 150, 175), (9, 2, 175, 200)];
    let cases: [(&[TxId], &[Pgid]); 8] = [
        (&[], &[3, 4, 5, 6, 7, 8, 9, 10]),
        (&[99], &[3, 4, 5, 6, 7, 8, 9, 10]),
        (&[100], &[5, 6, 7, 8, 9, 10]),
        (&[124], &[5, 6, 7, 8, 9, 10]),
        (&[150], &[4, 5, 9, 10]),
        (&[150, 199], &[4, 5]),
        (&[110, 130, 160, 180], &[]),
        (&[200], &[3, 4, 5, 6, 7, 8, 9, 10]),
    ];
    for (readers, expected) in cases {
        let mut free = Freelist::default();
        for &(start, len, allocated_by, freed_by) in &runs {
            free.committed(allocated_by, &[run(start, len)], &[], true, false);
            free.committed(freed_by, &[], &[run(start, len)], true, false);
        }
        free.release(pins(readers)).unwrap();
        let released: Vec<Pgid> = free.free().iter().flat_map(|run| run.start..run.start + run.len).collect();
        assert_eq!(released, expected, "{readers:?}");
    }
}

#[test]
fn a_keeper_has_the_copies_and_not_what_they_were_copied_from() {
    let mut free = Freelist::default();
    free.committed(3, &[run(20, 1), run(21, 1)], &[], true, false);
    // State 5 is being written to the file: page 20 has a copy there, page 40. Page 50 is the file's alone.
    free.committed(7, &[], &[run(20, 1)], true, false);
    free.copied_for(5, &[(20, 40)]);
    free.only_of(5, [run(50, 1)].into_iter());
    free.committed(8, &[], &[run(21, 1), run(40, 1)], true, false);
    let mut released = |readers: &[TxId], keepers: [TxId; 2]| {
        free.release(Pins { readers: readers.to_vec(), keepers: keepers.map(Some) }).unwrap();
        free.free().iter().flat_map(|run| run.start..run.start + run.len).collect::<Vec<_>>()
    };
    // The state that is in the file has page 20 still, and so has a reader of state 5.
    assert_eq!(released(&[], [4, 5]), []);
    assert_eq!(released(&[5], [5, 5]), []);
    assert_eq!(released(&[], [5, 5]), [20]);
    assert_eq!(released(&[], [9, 9]), [20, 21, 40, 50]);
    assert_eq!(free.waiting_pages(), 0);
}

#[test]
fn a_list_with_pages_that_cannot_be_free_is_refused() {
    for ids in [&[1, 5][..], &[5, 5], &[6, 5, 5], &[1000]] {
        assert!(Freelist::load(2, ids.iter().copied(), 1000).is_err(), "{ids:?}");
    }
}

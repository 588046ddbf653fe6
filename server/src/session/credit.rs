//! The credit of a stream: how much of it the client is ready to take.

use tokio::time::Instant;

use super::flow::Flow;

/// The most that a balance grows to by CREDIT, in bytes; what is given beyond is lost.
const MOST: i64 = u32::MAX as i64;

/// How many bytes more a stream may send, and since when it may send none.
#[derive(Debug)]
pub(super) struct Credit {
    /// Below 0 where the last frame was longer than what was left.
    balance: i64,
    /// Where the stream's last frame ends among all that the connection sends.
    last_ends: u64,
    missing_since: Option<Instant>,
}

impl Credit {
    /// A stream begins with so many bytes.
    pub(super) const fn new(balance: i64) -> Self {
        Self { balance, last_ends: 0, missing_since: None }
    }

    /// Whether a frame may be sent.
    pub(super) const fn is_left(&self) -> bool {
        self.balance > 0
    }

    /// The client takes so many bytes more.
    pub(super) fn give(&mut self, bytes: u32) {
        self.balance = self.balance.saturating_add(bytes.into()).min(MOST.max(self.balance));
        if self.is_left() {
            self.missing_since = None;
        }
    }

    /// The client can say nothing any more: only the connection holds the stream back.
    pub(super) const fn lift(&mut self) {
        self.balance = i64::MAX;
        self.missing_since = None;
    }

    /// A frame with a body of so many bytes was written, which ends at `ends` among all that the connection sends.
    pub(super) fn take(&mut self, bytes: usize, ends: u64) {
        self.balance = self.balance.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.last_ends = ends;
    }

    /// So much has left. The time without credit begins only when the last frame has: before, there is nothing that the
    /// client could have taken.
    pub(super) fn note_sent(&mut self, sent: Flow) {
        if !self.is_left() && sent.bytes >= self.last_ends {
            self.missing_since.get_or_insert(sent.last);
        }
    }

    /// Since when the client has all that was sent, and has given no credit for more.
    pub(super) const fn missing_since(&self) -> Option<Instant> {
        self.missing_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_overdrawn_by_one_frame_and_paid_back_first() {
        let mut credit = Credit::new(100);
        credit.take(99, 99);
        assert!(credit.is_left());
        credit.take(1_000, 1_099);
        assert!(!credit.is_left());
        credit.give(999);
        assert!(!credit.is_left());
        credit.give(0);
        assert!(!credit.is_left());
        credit.give(1);
        assert!(credit.is_left());
    }

    #[test]
    fn a_balance_does_not_overflow() {
        let mut credit = Credit::new(i64::MAX);
        credit.give(u32::MAX);
        assert_eq!(credit.balance, i64::MAX, "a dialect without credit keeps what it has");
        let mut credit = Credit::new(1);
        credit.give(u32::MAX);
        credit.give(u32::MAX);
        assert_eq!(credit.balance, MOST);
        credit.take(usize::MAX, 0);
        assert!(!credit.is_left());
    }

    #[test]
    fn the_time_without_credit_begins_when_the_last_frame_has_left_and_ends_with_credit() {
        let mut credit = Credit::new(10);
        let at = Instant::now();
        let sent = |bytes| Flow { bytes, last: at };
        credit.note_sent(sent(0));
        assert_eq!(credit.missing_since(), None, "there is some");
        credit.take(10, 500);
        credit.note_sent(sent(499));
        assert_eq!(credit.missing_since(), None);
        credit.note_sent(sent(500));
        assert_eq!(credit.missing_since(), Some(at));
        credit.give(1);
        assert_eq!(credit.missing_since(), None);
    }
}

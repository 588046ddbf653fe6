//! What scripts are drawn from.

/// The words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// Draws a command of its group.
pub(crate) type Generator = fn(&mut Draw) -> Words;

/// All keys that scripts use: so few that commands meet.
pub(crate) const KEYS: &[&str] = &["a", "b", "c", "key:4", "\r\n", ""];

/// The same numbers from the same seed (`SplitMix64`).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        // Mixed: from neighbours, the same numbers would come, one place on.
        let mut draw = Self(seed);
        Self(draw.any())
    }

    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.any() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub(crate) fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    pub(crate) fn key(&mut self) -> String {
        self.pick(KEYS).to_owned()
    }

    /// A word in some letter case.
    pub(crate) fn case(&mut self, word: &str) -> String {
        if self.below(4) == 0 { word.to_lowercase() } else { word.to_owned() }
    }

    /// A whole number, likely a small one or one at a bound, or now and then none.
    pub(crate) fn integer(&mut self) -> String {
        match self.below(12) {
            0 => self.pick(&["9223372036854775807", "-9223372036854775808", "9223372036854775808", "0"]).to_owned(),
            1 => self.pick(&["-9223372036854775807", "4294967296", "-2147483649", "9007199254740993"]).to_owned(),
            2 => self.pick(&["", "x", "1.0", "+1", "01", "-0", " 1", "1 ", "0x10", "-"]).to_owned(),
            3 => self.any().cast_signed().to_string(),
            4..=7 => format!("-{}", 1 + self.below(40)),
            _ => self.below(100).to_string(),
        }
    }

    /// A number with a fraction, as people and programs write it, or now and then none.
    pub(crate) fn float(&mut self) -> String {
        let sign = self.pick(&["", "", "-", "+"]);
        let number = match self.below(10) {
            0 => return self.integer(),
            1 => self.pick(&["inf", "-Infinity", "nan", "1e", ".", "1e5000", "1e-5000", "0x1p-3", "1e4932"]).to_owned(),
            2 => format!("{}e{}", self.below(1000), self.below(40)),
            3 => format!("{}e-{}", self.below(1000), self.below(24)),
            4 => format!(".{}", self.any()),
            5 => format!("{}.", self.any()),
            6 => format!("{}.{}", self.any(), self.any()),
            _ => format!("{}.{:03}", self.below(1000), self.below(1000)),
        };
        format!("{sign}{number}")
    }

    /// Bytes: a number, letters of few kinds, or any bytes, also many.
    pub(crate) fn value(&mut self) -> Vec<u8> {
        match self.below(8) {
            0 => Vec::new(),
            1 | 2 => self.integer().into(),
            3 => self.float().into(),
            4 | 5 => {
                let len = self.below(12);
                (0..len).map(|_| b"ab\0\xff"[self.below(4)]).collect()
            }
            6 => {
                let len = self.below(60);
                (0..len).map(|_| self.any().to_le_bytes()[0]).collect()
            }
            _ => vec![self.any().to_le_bytes()[0]; self.below(300)],
        }
    }

    /// So many of something.
    pub(crate) fn some<T>(&mut self, from: usize, below: usize, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = from + self.below(below - from);
        (0..count).map(|_| one(self)).collect()
    }
}

pub(crate) fn words<W: AsRef<[u8]>>(words: &[W]) -> Words {
    words.iter().map(|word| word.as_ref().to_vec()).collect()
}

/// A command as it is shown.
pub(crate) fn show(words: &[Vec<u8>]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{}\"", word.escape_ascii())).collect();
    words.join(" ")
}

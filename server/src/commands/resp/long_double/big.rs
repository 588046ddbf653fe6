//! Whole numbers of any length, with the little arithmetic that reading and writing numbers needs.

use std::cmp::Ordering;

/// What a limb is smaller than.
const BASE: u64 = 1 << 32;
/// The power of ten that fits a limb.
const TEN_TO_9: u32 = 1_000_000_000;

/// A whole number, its lowest limb first; the highest one is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Big {
    limbs: Vec<u32>,
}

impl Big {
    pub(super) fn one() -> Self {
        Self { limbs: vec![1] }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.limbs.is_empty()
    }

    /// How many bits it has.
    pub(super) fn bits(&self) -> usize {
        let Some(highest) = self.limbs.last() else { return 0 };
        32 * self.limbs.len() - highest.leading_zeros() as usize
    }

    /// Multiplies, and adds.
    pub(super) fn multiply(&mut self, factor: u32, add: u32) {
        let mut carry = u64::from(add);
        for limb in &mut self.limbs {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = (product % BASE) as u32;
            carry = product / BASE;
        }
        if carry != 0 {
            self.limbs.push((carry % BASE) as u32);
        }
    }

    pub(super) fn multiply_by_ten_to(&mut self, power: usize) {
        for _ in 0..power / 9 {
            self.multiply(TEN_TO_9, 0);
        }
        for _ in 0..power % 9 {
            self.multiply(10, 0);
        }
    }

    pub(super) fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        self.multiply(1 << (bits % 32), 0);
        self.limbs.splice(0..0, std::iter::repeat_n(0, bits / 32));
    }

    /// Halves it, so many times; whether anything but zeros was dropped.
    pub(super) fn shift_right(&mut self, bits: usize) -> bool {
        let whole = (bits / 32).min(self.limbs.len());
        let mut dropped = self.limbs.drain(..whole).any(|limb| limb != 0);
        let shift = bits % 32;
        let mut carry = 0;
        for limb in self.limbs.iter_mut().rev() {
            let both = (carry << 32) | u64::from(*limb);
            carry = both & ((1 << shift) - 1);
            *limb = ((both >> shift) % BASE) as u32;
        }
        dropped |= carry != 0;
        self.trim();
        dropped
    }

    /// Takes another one away that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = 0;
        for (at, limb) in self.limbs.iter_mut().enumerate() {
            let taken = u64::from(other.limbs.get(at).copied().unwrap_or(0)) + borrow;
            let left = BASE + u64::from(*limb) - taken;
            *limb = (left % BASE) as u32;
            borrow = u64::from(left < BASE);
        }
        self.trim();
    }

    /// How often `divisor` is in it, and whether something is left. The quotient has at most 127 bits.
    pub(super) fn divide(mut self, mut divisor: Self) -> (u128, bool) {
        let steps = (self.bits() + 1).saturating_sub(divisor.bits());
        divisor.shift_left(steps);
        let mut quotient = 0;
        for _ in 0..steps {
            divisor.shift_right(1);
            quotient <<= 1;
            if self.compare(&divisor).is_ge() {
                self.subtract(&divisor);
                quotient |= 1;
            }
        }
        (quotient, !self.is_zero())
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_len = self.limbs.len().cmp(&other.limbs.len());
        by_len.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }

    /// Its lowest 128 bits.
    pub(super) fn low(&self) -> u128 {
        self.limbs.iter().take(4).rev().fold(0, |low, limb| (low << 32) | u128::from(*limb))
    }

    /// Its decimal digits.
    pub(super) fn decimal(mut self) -> String {
        let mut nines = Vec::new();
        while !self.is_zero() {
            let mut rest = 0;
            for limb in self.limbs.iter_mut().rev() {
                let both = rest * BASE + u64::from(*limb);
                *limb = ((both / u64::from(TEN_TO_9)) % BASE) as u32;
                rest = both % u64::from(TEN_TO_9);
            }
            self.trim();
            nines.push(rest);
        }
        let mut digits = nines.pop().unwrap_or(0).to_string();
        digits.extend(nines.iter().rev().map(|nine| format!("{nine:09}")));
        digits
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }
}

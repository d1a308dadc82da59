//! What a few noisy measurements allow to be said.
//!
//! Between two sets of measurements a winner is called only when the ratio of their medians lies on one side of 1 with
//! everything that the noise could have made of it: resampling 99 times out of 100, or, with fewer than five measurements,
//! which resampling says nothing about, their extremes and as much again. Sets are compared as they are, not pair by pair,
//! so a machine that grows slower while it is measured widens both, and a winner is refused sooner.

use crate::ipc::{Call, Ratio, Spread};

/// Fewer measurements of either side tell nothing.
const LEAST: usize = 3;
/// From here on resampling is used.
const ENOUGH: usize = 5;
/// Differences below this are never called: clocks, schedulers and fans make as much.
const FLOOR: f64 = 0.01;
const RESAMPLES: usize = 4000;
/// Share of the resampled ratios that lies outside on either side.
const TAIL: f64 = 0.005;

/// Median, smallest and largest of what can be measured: positive and finite numbers. `None` without any.
#[must_use]
pub fn spread(values: &[f64]) -> Option<Spread> {
    let values = measured(values);
    let sorted = sorted(&values);
    Some(Spread {
        median: median(&sorted)?,
        min: *sorted.first()?,
        max: *sorted.last()?,
        values,
    })
}

/// The median of `first` by that of `second`, and what may be said of it. `None` where one of them is empty.
#[must_use]
pub fn ratio(first: &Spread, second: &Spread) -> Option<Ratio> {
    let (a, b) = (sorted(&measured(&first.values)), sorted(&measured(&second.values)));
    let value = median(&a)? / median(&b)?;
    let fewest = a.len().min(b.len());
    if fewest < LEAST {
        return Some(Ratio {
            value,
            low: None,
            high: None,
            call: Call::TooFew,
        });
    }
    let (low, high) = if fewest < ENOUGH {
        let ((a_low, a_high), (b_low, b_high)) = (widened(&a)?, widened(&b)?);
        (a_low / b_high, a_high / b_low)
    } else {
        resampled(&a, &b)?
    };
    let call = match (low, high) {
        _ if low > 1.0 + FLOOR => Call::Higher,
        _ if high < 1.0 - FLOOR => Call::Lower,
        _ => Call::Noise,
    };
    Some(Ratio {
        value,
        low: Some(low),
        high: Some(high),
        call,
    })
}

/// The middle number of sorted ones; between the two middle ones where their number is even.
#[must_use]
pub fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    Some((lower + upper) / 2.0)
}

/// The numbers in order; none of them may be NaN.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A rate or a time of 0 is one that was not measured.
fn measured(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|v| v.is_finite() && *v > 0.0).collect()
}

/// The extremes and as much again, but never down to nothing.
fn widened(sorted: &[f64]) -> Option<(f64, f64)> {
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let range = max - min;
    Some(((min - range).max(min / 10.0), max + range))
}

/// Where the ratio of medians falls when both sets are drawn anew from themselves. The draws are the same each time.
fn resampled(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut draw = |from: &[f64]| {
        let drawn: Vec<f64> = (0..from.len())
            .filter_map(|_| from.get(below(&mut state, from.len())).copied())
            .collect();
        median(&sorted(&drawn))
    };
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        ratios.push(draw(a)? / draw(b)?);
    }
    let ratios = sorted(&ratios);
    let outside = (RESAMPLES as f64 * TAIL) as usize;
    Some((*ratios.get(outside)?, *ratios.get(RESAMPLES - 1 - outside)?))
}

/// A number below `n`, by splitmix64.
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % n.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 1, 0 left out.
    fn uniform(state: &mut u64) -> f64 {
        (below(state, 1 << 30) + 1) as f64 / f64::from(1 << 30)
    }

    /// Around `mean`, `share` of it wide.
    fn normal(state: &mut u64, mean: f64, share: f64) -> f64 {
        let (u, v) = (uniform(state), uniform(state));
        mean * (1.0 + share * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos())
    }

    /// Mostly near `mean`, now and then a fraction of it, as when another program takes the machine.
    fn disturbed(state: &mut u64, mean: f64) -> f64 {
        let usual = normal(state, mean, 0.02);
        if uniform(state) < 0.15 { usual * 0.3 } else { usual }
    }

    fn called(a: &[f64], b: &[f64]) -> Call {
        ratio(&spread(a).unwrap(), &spread(b).unwrap()).unwrap().call
    }

    /// Of 400 pairs of sets, how many are called as `call`.
    fn share(call: Call, n: usize, mut make: impl FnMut(&mut u64, bool) -> f64) -> f64 {
        let mut state = 7;
        let hits = (0..400).filter(|_| {
            let a: Vec<f64> = (0..n).map(|_| make(&mut state, true)).collect();
            let b: Vec<f64> = (0..n).map(|_| make(&mut state, false)).collect();
            called(&a, &b) == call
        });
        hits.count() as f64 / 400.0
    }

    #[test]
    fn the_median_is_the_middle_one() {
        let odd = spread(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!(odd.values, [3.0, 1.0, 2.0], "as measured");
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let one = spread(&[f64::NAN, 0.0, 5.0, f64::INFINITY, -1.0]).unwrap();
        assert_eq!((one.median, one.values.len()), (5.0, 1));
        assert_eq!(spread(&[f64::NAN, 0.0]), None);
        assert_eq!(spread(&[]), None);
        let (one, empty) = (
            spread(&[5.0]).unwrap(),
            Spread {
                values: vec![0.0],
                ..one
            },
        );
        assert_eq!(ratio(&one, &empty), None);
    }

    #[test]
    fn one_or_two_measurements_call_nothing() {
        let single = ratio(&spread(&[20.0]).unwrap(), &spread(&[10.0]).unwrap()).unwrap();
        assert_eq!((single.value, single.low, single.call), (2.0, None, Call::TooFew));
        assert_eq!(called(&[20.0, 20.1], &[10.0, 10.0, 10.1]), Call::TooFew);
    }

    #[test]
    fn a_clear_difference_is_called_and_its_direction_is_right() {
        for n in [3, 5, 10] {
            assert!(
                share(Call::Higher, n, |s, first| normal(
                    s,
                    if first { 16.0 } else { 10.0 },
                    0.02
                )) > 0.95
            );
            assert!(
                share(Call::Lower, n, |s, first| normal(
                    s,
                    if first { 7.0 } else { 10.0 },
                    0.02
                )) > 0.95
            );
        }
        let r = ratio(
            &spread(&[16.0, 16.2, 15.8, 16.1, 15.9]).unwrap(),
            &spread(&[10.0, 10.1, 9.9, 10.0, 10.0]).unwrap(),
        );
        let r = r.unwrap();
        assert!(
            r.low.unwrap() > 1.5 && r.high.unwrap() < 1.7 && r.low.unwrap() <= r.value && r.value <= r.high.unwrap()
        );
    }

    #[test]
    fn no_winner_is_made_of_noise() {
        for n in [3, 4, 5, 10] {
            let false_calls = 1.0 - share(Call::Noise, n, |s, _| normal(s, 10.0, 0.05));
            assert!(false_calls < 0.05, "{n} measurements: {false_calls}");
            let false_calls = 1.0 - share(Call::Noise, n, |s, _| disturbed(s, 10.0));
            assert!(false_calls < 0.05, "{n} disturbed measurements: {false_calls}");
        }
    }

    #[test]
    fn a_difference_that_clocks_make_is_never_called() {
        let a = [10.05, 10.051, 10.049, 10.05, 10.05];
        assert_eq!(called(&a, &[10.0, 10.001, 9.999, 10.0, 10.0]), Call::Noise);
    }

    #[test]
    fn a_heavy_tail_does_not_hide_a_large_difference() {
        assert!(
            share(Call::Higher, 10, |s, first| disturbed(
                s,
                if first { 20.0 } else { 10.0 }
            )) > 0.8
        );
    }

    #[test]
    fn a_drift_larger_than_the_difference_refuses_a_winner() {
        // The machine slows down by half while both are measured in turn; one is 5 % faster all along.
        let slowing = |i: usize| 1.0 - 0.05 * i as f64;
        let on: Vec<f64> = (0..10).map(|i| 10.5 * slowing(i)).collect();
        let off: Vec<f64> = (0..10).map(|i| 10.0 * slowing(i)).collect();
        assert_eq!(called(&on, &off), Call::Noise);
        let much: Vec<f64> = on.iter().map(|v| v * 3.0).collect();
        assert_eq!(called(&much, &off), Call::Higher);
    }

    #[test]
    fn the_same_measurements_give_the_same_answer() {
        let (a, b) = (
            spread(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(),
            spread(&[2.0, 3.0, 2.5, 2.2, 2.9]).unwrap(),
        );
        assert_eq!(ratio(&a, &b), ratio(&a, &b));
    }
}

//! Whether tokens follow a distribution, at a stated rate of false alarms.

use std::cell::RefCell;
use std::collections::HashMap;

use models::SamplingParams;
use models::family::Target;
use models::generate::Round;
use models::sampler::Sampler;
use tests::floats;

use super::PROMPT;
use super::chain::Chain;

/// The chance that one of this module's statistical tests fails although the code is right, all of them together. Seeds
/// are fixed, so a test that passed once passes always.
const FALSE_ALARM: f64 = 1e-6;
/// No more statistical tests than this are made in this module.
const TRIALS: f64 = 300.0;

/// A chain's filtered distributions, each computed once by [`Sampler::distribution`].
pub(super) struct Law<'a> {
    chain: &'a Chain,
    sampler: Sampler,
    known: RefCell<HashMap<Vec<u32>, Vec<f64>>>,
}

impl<'a> Law<'a> {
    pub(super) fn new(chain: &'a Chain, params: &SamplingParams) -> Self {
        Self {
            chain,
            sampler: Sampler::new(params, chain.vocabulary()).unwrap(),
            known: RefCell::default(),
        }
    }

    /// The distribution after a history.
    pub(super) fn after(&self, history: &[u32]) -> Vec<f64> {
        let last = *history.last().unwrap();
        let mut case = vec![0; self.chain.vocabulary()];
        if self.sampler.counts_tokens() {
            history.iter().for_each(|t| case[*t as usize] += 1);
        }
        case.push(last);
        let compute = || {
            let counts = self.sampler.count(history);
            let p = self.sampler.distribution(&self.chain.row(last), &counts).unwrap();
            floats(&p).into_iter().map(f64::from).collect()
        };
        self.known.borrow_mut().entry(case).or_insert_with(compute).clone()
    }
}

/// A bet against a claimed distribution.
///
/// Before each token a guess is made from what was seen before in the same situation; after it, the stake is multiplied
/// by guess / claim. If the claims are true, the expected factor is 1 whatever the guesses are, so the chance that the
/// stake is ever multiplied by `a` is at most `1 / a` (Ville's inequality). Unlike the chi-square test's, this rate is no
/// approximation, and it holds when claims depend on all that was said before and the number of tokens is random.
#[derive(Default)]
pub(super) struct Bet {
    pub log_stake: f64,
    /// For each situation and token: how often it came, and how often it was claimed to come.
    seen: HashMap<Vec<u32>, Vec<(f64, f64)>>,
}

impl Bet {
    /// How many claimed tokens the guess waits for before it trusts what it saw.
    const PATIENCE: f64 = 8.0;

    pub(super) fn on(&mut self, situation: &[u32], claim: &[f64], token: u32) {
        let token = token as usize;
        let seen = self
            .seen
            .entry(situation.to_vec())
            .or_insert_with(|| vec![(0.0, 0.0); claim.len()]);
        let bent = |(claim, (came, due)): (&f64, &(f64, f64))| claim * (came + Self::PATIENCE) / (due + Self::PATIENCE);
        let sum: f64 = claim.iter().zip(&*seen).map(bent).sum();
        let total: f64 = claim.iter().sum();
        // A token that cannot come makes the stake infinite.
        self.log_stake += if claim[token] > 0.0 {
            (bent((&claim[token], &seen[token])) / sum).ln() - (claim[token] / total).ln()
        } else {
            f64::INFINITY
        };
        for (i, (came, due)) in seen.iter_mut().enumerate() {
            *came += f64::from(u8::from(i == token));
            *due += claim[i] / total;
        }
    }

    /// The claims hold, as far as `FALSE_ALARM` allows to tell.
    pub(super) fn is_lost(&self) -> bool {
        self.log_stake < (TRIALS / FALSE_ALARM).ln()
    }
}

/// Three bets on a run.
#[derive(Default)]
pub(super) struct Bets {
    /// On each token, by the one before it.
    transitions: Bet,
    /// On each token, by its place in the round and the two before it: how a round's earlier drafts were judged must say
    /// nothing about the next.
    places: Bet,
    /// On each judged draft, by the token before it: it is accepted with probability `sum(min(p, q))`.
    judgements: Bet,
}

impl Bets {
    pub(super) fn on(&mut self, (p, q): (&Law<'_>, &Law<'_>), rounds: &[Round]) {
        let mut history = PROMPT.to_vec();
        for round in rounds {
            let judged = round.drafted.min(round.accepted + 1);
            for (place, token) in round.tokens.iter().enumerate() {
                let [.., before, last] = history[..] else {
                    unreachable!()
                };
                let claim = p.after(&history);
                if place < judged {
                    let common: f64 = claim.iter().zip(q.after(&history)).map(|(p, q)| p.min(q)).sum();
                    let common = common.min(1.0);
                    let accepted = u32::from(place < round.accepted);
                    self.judgements.on(&[last], &[1.0 - common, common], accepted);
                }
                self.transitions.on(&[last], &claim, *token);
                self.places.on(&[place as u32, last, before], &claim, *token);
                history.push(*token);
            }
        }
    }

    pub(super) fn failures(&self, case: &str) -> Vec<String> {
        let Self {
            transitions,
            places,
            judgements,
        } = self;
        [
            ("transitions", transitions),
            ("places", places),
            ("judgements", judgements),
        ]
        .iter()
        .filter(|(_, bet)| !bet.is_lost())
        .map(|(what, bet)| format!("{case}: {what}, log stake {:.1}", bet.log_stake))
        .collect()
    }
}

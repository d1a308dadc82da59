//! Whether and how a reply is drafted for, and the sentence that says so.

use std::cell::RefCell;
use std::rc::Rc;

use super::loading::Model;
use super::{Acceptance, DrafterState, Exactness, GenerateRequest, MAX_BLOCK_SIZE, Prior, SelfCheck, Speculation};
use crate::generate::{Controller, ControllerState, Costs, Depth};
use crate::nn::rows::CHECKED_ROWS;
use crate::{Error, Result};

/// What speculation does for a reply, and why.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum SpeculationState {
    /// It was not asked for.
    #[default]
    Off,
    /// It was, and cannot be had.
    Unavailable {
        /// Why, in one sentence.
        reason: String,
    },
    /// The same number of drafts every round.
    Fixed {
        /// Drafts a round.
        depth: usize,
        /// Why this number, in a few words.
        why: String,
    },
    /// As many drafts as pay, by measured costs and acceptance.
    Auto(ControllerState),
}

impl SpeculationState {
    /// One of `off`, `unavailable`, `fixed`, `on`, `parked` and `probing`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Unavailable { .. } => "unavailable",
            Self::Fixed { .. } => "fixed",
            Self::Auto(ControllerState::On { .. }) => "on",
            Self::Auto(ControllerState::Parked { .. }) => "parked",
            Self::Auto(ControllerState::Probing { .. }) => "probing",
        }
    }

    /// Drafts a round at the moment.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Fixed { depth, .. }
            | Self::Auto(ControllerState::On { depth, .. } | ControllerState::Probing { depth, .. }) => *depth,
            _ => 0,
        }
    }

    /// The state in one plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Off => "speculation is switched off".to_owned(),
            Self::Unavailable { reason } => reason.clone(),
            Self::Fixed { depth: 1, why } => format!("on: 1 draft a round, {why}"),
            Self::Fixed { depth, why } => format!("on: {depth} drafts a round, {why}"),
            Self::Auto(state) => state.sentence(),
        }
    }
}

/// What exactness rests on, in one plain sentence.
#[must_use]
pub fn exactness_sentence(check: Option<&SelfCheck>, exactness: Exactness) -> String {
    let Some(check) = check else {
        return "exact: there is no drafter, so every token is computed by itself".to_owned();
    };
    let (all, apart) = (check.ops.len(), check.ops.iter().filter(|op| !op.is_native()).count());
    let is_whole = check.block >= MAX_BLOCK_SIZE;
    match exactness {
        Exactness::Exact if check.block < 2 => {
            "exact: on this machine no block of tokens gives what single tokens give, so nothing is drafted".to_owned()
        }
        Exactness::Exact => {
            let how = match apart {
                0 => "exact: on this machine a block of tokens gives what single tokens give".to_owned(),
                n => format!(
                    "exact: {n} of {all} kinds of operation run in parts, as on this machine a whole block would round \
                     them otherwise"
                ),
            };
            if is_whole {
                how
            } else {
                format!("{how}; blocks have {} tokens at most", check.block)
            }
        }
        Exactness::Fast if apart == 0 && is_whole => "fast: here it is as exact as exact mode".to_owned(),
        Exactness::Fast if apart == 0 => format!(
            "fast, not exact: on this machine blocks of more than {} tokens may give other text than single tokens",
            check.block
        ),
        Exactness::Fast => format!(
            "fast, not exact: {apart} of {all} kinds of operation round a block otherwise than single tokens, so the text \
             may differ from that without speculation"
        ),
    }
}

/// Who decides on the drafts of a reply.
pub(super) enum Plan {
    /// Nobody: no drafts.
    Plain(SpeculationState),
    /// The request, or a rule.
    Fixed(usize, String),
    /// What pays.
    Auto(Rc<RefCell<Controller>>),
}

impl Plan {
    pub(super) fn depth(&self) -> Option<Depth> {
        match self {
            Self::Plain(_) => None,
            Self::Fixed(depth, _) => Some(Depth::Fixed(*depth)),
            Self::Auto(controller) => Some(Depth::Measured(controller.clone())),
        }
    }

    pub(super) fn state(&self) -> SpeculationState {
        match self {
            Self::Plain(state) => state.clone(),
            Self::Fixed(depth, why) => SpeculationState::Fixed {
                depth: *depth,
                why: why.clone(),
            },
            Self::Auto(controller) => SpeculationState::Auto(controller.borrow().state()),
        }
    }
}

/// How to decode for a request whose drafts are kept by `accept`.
pub(super) fn plan(model: &Model, request: &GenerateRequest, accept: Acceptance) -> Result<Plan> {
    if let Speculation::Block(size) = request.speculation
        && !(2..=MAX_BLOCK_SIZE).contains(&size)
    {
        return Err(Error::Usage {
            message: format!("block size is {size}, but must be from 2 to {MAX_BLOCK_SIZE}"),
        });
    }
    let own = match (request.speculation, &model.loaded.drafter) {
        (Speculation::Off, _) => return Ok(Plan::Plain(SpeculationState::Off)),
        (_, DrafterState::Unavailable { reason }) => {
            let reason = reason.clone();
            return Ok(Plan::Plain(SpeculationState::Unavailable { reason }));
        }
        (_, DrafterState::Ready { block_size, .. }) => *block_size,
    };
    let exact = match (request.exactness, &model.loaded.self_check) {
        (Exactness::Exact, Some(check)) => check.block,
        _ => MAX_BLOCK_SIZE,
    };
    if exact < 2 {
        let reason = "on this device a block of tokens cannot be made to give the same text as single tokens, so exact \
                      mode does not speculate; fast mode does";
        return Ok(Plan::Plain(SpeculationState::Unavailable {
            reason: reason.to_owned(),
        }));
    }
    let fixed = |size: usize, why: &str| {
        let why = if size > exact {
            "the most that is exact on this device"
        } else {
            why
        };
        Plan::Fixed(size.min(exact) - 1, why.to_owned())
    };
    Ok(match request.speculation {
        Speculation::Block(size) => fixed(size, "as asked"),
        _ if accept == Acceptance::Rejection => {
            fixed(own, "the head's own number: drafts kept by chance are part of the text")
        }
        // Compared at the head's own number or not at all.
        _ if own <= exact && model.wirings.is_on_trial() && request.wiring.is_none() => {
            fixed(own, "the head's own number while ways to wire it are compared")
        }
        _ => Plan::Auto(controller(model, request.exactness, own - 1, exact)),
    })
}

/// The controller of the loaded pair: what it learned in one reply serves the next.
fn controller(model: &Model, exactness: Exactness, own: usize, exact: usize) -> Rc<RefCell<Controller>> {
    let slot = match exactness {
        Exactness::Exact => &model.controllers[0],
        Exactness::Fast => &model.controllers[1],
    };
    slot.borrow_mut()
        .get_or_insert_with(|| {
            // Fast mode's costs are others; what is known of exact mode's is nearer than nothing.
            let costs = model.loaded.costs.clone();
            Rc::new(RefCell::new(new_controller(costs, &model.request.prior, own, exact)))
        })
        .clone()
}

/// A controller that has seen no round, for a head with `own` drafts by default and blocks that are exact up to `exact`.
pub(super) fn new_controller(costs: Option<Costs>, prior: &Prior, own: usize, exact: usize) -> Controller {
    let most = exact.min(CHECKED_ROWS as usize).saturating_sub(1);
    Controller::new(costs, most, own).begin(prior.depth, &prior.acceptance)
}

//! Operators whose cost minijinja does not bound, and which differ from Python's.
//!
//! The compiled template calls these functions in place of the instructions. Their names are no identifiers, so that no
//! template can mean them.

use minijinja::machinery::{Instruction, Instructions};
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::filters::escape;
use super::python;

const ADD: &str = "+";
const CONCAT: &str = "~";
const EQUAL: &str = "==";
const NOT_EQUAL: &str = "!=";
/// Items of a list that one step pays for.
const ITEMS_PER_FUEL: usize = 2;

pub(super) fn add_to(env: &mut Environment) {
    env.add_function(ADD, add);
    env.add_function(CONCAT, concat);
    env.add_function(EQUAL, |state: &State, a: &Value, b: &Value| equal(state, a, b, 0));
    env.add_function(NOT_EQUAL, |state: &State, a: &Value, b: &Value| {
        equal(state, a, b, 0).map(|equal| !equal)
    });
}

/// Puts the calls where the instructions were.
pub(super) fn replace(instructions: &mut Instructions) {
    let mut at = 0;
    while let Some(instruction) = instructions.get_mut(at) {
        let name = match instruction {
            Instruction::Add => Some(ADD),
            Instruction::StringConcat => Some(CONCAT),
            Instruction::Eq => Some(EQUAL),
            Instruction::Ne => Some(NOT_EQUAL),
            _ => None,
        };
        if let Some(name) = name {
            *instruction = Instruction::CallFunction(name, Some(2));
        }
        at += 1;
    }
}

fn add(state: &State, a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        // As in Python, safe text escapes what is added to it.
        if a.is_safe() || b.is_safe() {
            let (left, right) = (
                python::str_of(state, &escape(state, a)?)?,
                python::str_of(state, &escape(state, b)?)?,
            );
            return Ok(Value::from_safe_string(left + &right));
        }
        return Ok(Value::from([left, right].concat()));
    }
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if is_list(a) && is_list(b) && a.is_tuple() == b.is_tuple() {
        let mut items = Vec::new();
        for item in a.try_iter()?.checked().chain(b.try_iter()?.checked()) {
            if items.len() % ITEMS_PER_FUEL == 0 {
                state.consume_fuel(1)?;
            }
            items.push(item?);
        }
        return Ok(if a.is_tuple() {
            Value::from(Tuple::from(items))
        } else {
            Value::from(items)
        });
    }
    match (number(a), number(b)) {
        (Some(Number::Whole(a)), Some(Number::Whole(b))) => {
            let sum = a
                .checked_add(b)
                .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "the sum is too large"))?;
            Ok(i64::try_from(sum).map_or_else(|_| Value::from(sum), Value::from))
        }
        (Some(a), Some(b)) => Ok(Value::from(a.real() + b.real())),
        _ => {
            let kind = if a.is_undefined() || b.is_undefined() {
                ErrorKind::UndefinedError
            } else {
                ErrorKind::InvalidOperation
            };
            Err(Error::new(kind, format!("cannot add {} and {}", a.kind(), b.kind())))
        }
    }
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    fn real(self) -> f64 {
        match self {
            Number::Whole(whole) => whole as f64,
            Number::Real(real) => real,
        }
    }
}

fn number(value: &Value) -> Option<Number> {
    match value.kind() {
        ValueKind::Bool => Some(Number::Whole(i128::from(value.is_true()))),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok().map(Number::Whole),
        ValueKind::Number => f64::try_from(value.clone()).ok().map(Number::Real),
        _ => None,
    }
}

fn concat(state: &State, a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        return Ok(Value::from([left, right].concat()));
    }
    Ok(Value::from(python::str_of(state, a)? + &python::str_of(state, b)?))
}

fn equal(state: &State, a: &Value, b: &Value, depth: usize) -> Result<bool, Error> {
    let is_list = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    let both_lists = is_list(a) && is_list(b);
    let both_maps = a.kind() == ValueKind::Map && b.kind() == ValueKind::Map;
    if !both_lists && !both_maps {
        return Ok(a == b);
    }
    if depth == python::MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, python::TOO_DEEP));
    }
    if a.is_tuple() != b.is_tuple() || a.len() != b.len() {
        return Ok(false);
    }
    let mut others = b.try_iter()?.checked();
    for item in a.try_iter()?.checked() {
        state.consume_fuel(1)?;
        let item = item?;
        let (mine, other) = if both_lists {
            (item, others.next().transpose()?.unwrap_or_default())
        } else {
            let other = b.get_item(&item)?;
            if other.is_undefined() {
                return Ok(false);
            }
            (a.get_item(&item)?, other)
        };
        if !equal(state, &mine, &other, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

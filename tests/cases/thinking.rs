//! Raw model output: reasoning, answer, tool calls.

use models::text::{Outcome, OutputFormat, Thinking, ThinkingParser};
use serde_json::{Map, Value, json};

use super::{Check, list, number, run, same, text};

#[test]
fn thinking() {
    run("thinking", |case| {
        let output: Vec<char> = text(&case["output"]).chars().collect();
        let mut cuts = vec![vec![output.len()], vec![1; output.len()]];
        cuts.extend(
            list(&case["cuts"])
                .iter()
                .map(|cut| list(cut).iter().map(number).collect()),
        );
        for size in [2, 3, 7] {
            cuts.push(vec![size; output.len().div_ceil(size)]);
        }
        for sizes in cuts {
            check_thinking(case, &output, &sizes).map_err(|error| format!("cut {sizes:?}: {error}"))?;
        }
        Ok(())
    });
}

fn check_thinking(case: &Value, output: &[char], sizes: &[usize]) -> Check {
    let format = match text(&case["format"]) {
        "qwen" => OutputFormat::Qwen,
        "inkling" => OutputFormat::Inkling,
        _ => OutputFormat::Plain,
    };
    let expect = &case["expect"];
    let mut parser = ThinkingParser::new(format, text(&case["prompt_tail"]), case.get("tools"));
    let (mut reasoning, mut answer) = (String::new(), String::new());
    let mut rest = output;
    for size in sizes {
        let (chunk, tail) = rest.split_at((*size).min(rest.len()));
        rest = tail;
        let delta = parser.push(&chunk.iter().collect::<String>());
        reasoning += &delta.reasoning;
        answer += &delta.answer;
        for never in list(&expect["never_shown"]).iter().map(text) {
            if reasoning.contains(never) || answer.contains(never) {
                return Err(format!("{never:?} is shown in {reasoning:?} or {answer:?}"));
            }
        }
    }
    if !rest.is_empty() {
        return Err("the cuts do not cover the output".to_owned());
    }
    let outcome = parser.finish(case["end"] == "length");
    same(
        "reasoning shown in pieces",
        reasoning + &outcome.last.reasoning,
        outcome.reasoning.clone(),
    )?;
    same(
        "answer shown in pieces",
        answer + &outcome.last.answer,
        outcome.answer.clone(),
    )?;
    check_outcome(expect, &outcome)
}

fn check_outcome(expect: &Value, outcome: &Outcome) -> Check {
    let is_loose = expect["loose"] == true;
    let bare = |text: &str| {
        if is_loose {
            text.split_whitespace().collect()
        } else {
            text.trim().to_owned()
        }
    };
    let reasoning = bare(&outcome.reasoning);
    if expect["reasoning_or"].as_str().map(bare).as_ref() != Some(&reasoning) {
        same("reasoning", reasoning, bare(text(&expect["reasoning"])))?;
    }
    if let Some(answer) = expect["answer"].as_str() {
        same("answer", bare(&outcome.answer), bare(answer))?;
    }
    let thinking = match outcome.thinking {
        Thinking::None => "none",
        Thinking::Open => "open",
        Thinking::Closed => "closed",
    };
    same("thinking", thinking, text(&expect["thinking"]))?;
    let calls: Vec<Value> = outcome
        .tool_calls
        .iter()
        .map(|call| by_value(&json!({"name": call.name, "arguments": call.arguments})))
        .collect();
    same(
        "tool calls",
        calls,
        list(&expect["tool_calls"]).iter().map(by_value).collect(),
    )?;
    same(
        "notice",
        outcome.thinking_used_budget,
        expect["notice"] == "thinking_used_budget",
    )
}

/// Numbers as floats, so that 1 equals 1.0.
fn by_value(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(by_value).collect(),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), by_value(value)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

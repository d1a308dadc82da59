use serde_json::{Value, json};

use super::{Delta, Outcome, OutputFormat, Sources, Stretch, Thinking, ThinkingParser};

const INSIDE: &str = "<|im_start|>assistant\n<think>\n";
const FRESH: &str = "<|im_start|>assistant\n";
const OFF: &str = "<|im_start|>assistant\n<think>\n\n</think>\n\n";

/// The outcome, the same whether the text comes whole, cut in two at each place or character by character.
fn parse_with(format: OutputFormat, prompt: &str, output: &str, limit: bool, tools: Option<&Value>) -> Outcome {
    let run = |pieces: &[&str]| {
        let mut parser = ThinkingParser::new(format, prompt, tools);
        let mut shown = Delta::default();
        let mut found = (String::new(), String::new());
        let mut find = |sources: &Sources| {
            let text = |stretches: &[Stretch]| {
                stretches
                    .iter()
                    .map(|s| &output[s.at..s.at + s.bytes])
                    .collect::<String>()
            };
            found.0 += &text(&sources.reasoning);
            found.1 += &text(&sources.answer);
        };
        for piece in pieces {
            let delta = parser.push(piece);
            shown.reasoning += &delta.reasoning;
            shown.answer += &delta.answer;
            find(&parser.take_sources());
        }
        let (outcome, sources) = parser.finish_with_sources(limit);
        find(&sources);
        shown.reasoning += &outcome.last.reasoning;
        shown.answer += &outcome.last.answer;
        assert_eq!(
            (&shown.reasoning, &shown.answer),
            (&outcome.reasoning, &outcome.answer),
            "{pieces:?}"
        );
        assert_eq!(found, (shown.reasoning, shown.answer), "where it stands: {pieces:?}");
        Outcome {
            last: Delta::default(),
            ..outcome
        }
    };
    let whole = run(&[output]);
    for (at, _) in output.char_indices() {
        let (left, right) = output.split_at(at);
        assert_eq!(run(&[left, right]), whole, "cut at {at}");
    }
    let characters: Vec<&str> = output.split("").collect();
    assert_eq!(run(&characters), whole);
    whole
}

fn parse(prompt: &str, output: &str) -> Outcome {
    parse_with(OutputFormat::Qwen, prompt, output, false, None)
}

fn parts(prompt: &str, output: &str) -> (Thinking, String, String) {
    let outcome = parse(prompt, output);
    (outcome.thinking, outcome.reasoning, outcome.answer)
}

fn is(thinking: Thinking, reasoning: &str, answer: &str) -> (Thinking, String, String) {
    (thinking, reasoning.to_owned(), answer.to_owned())
}

#[test]
fn the_prompt_decides_where_the_output_starts() {
    assert_eq!(parts(INSIDE, "a</think>b"), is(Thinking::Closed, "a", "b"));
    assert_eq!(parts(INSIDE, "<think>\na</think>b"), is(Thinking::Closed, "a", "b"));
    assert_eq!(parts(FRESH, "\n<think>a</think>b"), is(Thinking::Closed, "a", "b"));
    assert_eq!(
        parts(FRESH, "a <think>b</think>"),
        is(Thinking::None, "", "a <think>b</think>")
    );
    assert_eq!(parts(OFF, "<think>b"), is(Thinking::None, "", "<think>b"));
    // What earlier turns or the user wrote does not count.
    let prompt = "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(parts(prompt, "A tag."), is(Thinking::None, "", "A tag."));
}

#[test]
fn pieces_of_tags_are_text_at_the_end() {
    assert_eq!(parts(INSIDE, "a</thin"), is(Thinking::Open, "a</thin", ""));
    assert_eq!(
        parts(INSIDE, "a<tool_call>\n<func"),
        is(Thinking::Open, "a<tool_call>\n<func", "")
    );
    assert_eq!(parts(FRESH, "<thi"), is(Thinking::None, "", "<thi"));
    assert_eq!(parts(OFF, "a<tool_c"), is(Thinking::None, "", "a<tool_c"));
    assert_eq!(
        parts(OFF, "x </think> <<tool_call y"),
        is(Thinking::None, "", "x </think> <<tool_call y")
    );
}

#[test]
fn calls_are_taken_out_only_when_they_are_calls() {
    let call = "<tool_call>\n<function=f>\n<parameter=a>\n\n x\n\n</parameter>\n</function>\n</tool_call>";
    let outcome = parse(INSIDE, &format!("go {call} then {call}\n"));
    assert_eq!(
        (
            outcome.reasoning.as_str(),
            outcome.answer.as_str(),
            outcome.tool_calls.len()
        ),
        ("go", " then", 2)
    );
    assert_eq!(outcome.tool_calls[0].arguments, json!({"a": "\n x\n"}));
    // A mention is text, an unfinished call is nothing, a body that is no call is text.
    assert_eq!(
        parts(INSIDE, "use `<tool_call>` here</think>b"),
        is(Thinking::Closed, "use `<tool_call>` here", "b")
    );
    assert_eq!(
        parts(OFF, "Use `<tool_call>` here."),
        is(Thinking::None, "", "Use `<tool_call>` here.")
    );
    assert_eq!(parts(OFF, "a<tool_call>\n<function=f>"), is(Thinking::None, "", "a"));
    assert_eq!(
        parts(OFF, "a<tool_call>{1}</tool_call>b"),
        is(Thinking::None, "", "a<tool_call>{1}</tool_call>b")
    );
}

#[test]
fn arguments_follow_the_schema() {
    let properties = json!({
        "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"}, "s": {"type": "string"},
        "l": {"type": "array"}, "o": {"type": "object"}, "u": {"type": ["string", "null"]}, "v": {"type": ["integer", "null"]},
        "x": {}
    });
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]);
    for (key, text, value) in [
        ("i", "30", json!(30)),
        ("i", "many", json!("many")),
        ("n", "0.5", json!(0.5)),
        ("n", "2.0", json!(2)),
        ("b", "True", json!(true)),
        ("b", "no", json!(false)),
        ("s", "01", json!("01")),
        ("s", "null", Value::Null),
        ("l", "[1, {\"a\": null}]", json!([1, {"a": null}])),
        ("l", "['it', True, None]", json!(["it", true, null])),
        ("o", "{'a': (1, 2.5)}", json!({"a": [1, 2.5]})),
        ("o", "{broken", json!("{broken")),
        ("u", "12", json!("12")),
        ("v", "12", json!(12)),
        ("x", "12", json!("12")),
        ("unlisted", "[1]", json!("[1]")),
    ] {
        let output = format!("<tool_call><function=f><parameter={key}>{text}</parameter></function></tool_call>");
        let outcome = parse_with(OutputFormat::Qwen, OFF, &output, false, Some(&tools));
        assert_eq!(outcome.tool_calls[0].arguments, json!({key: value}), "{key} {text}");
    }
}

#[test]
fn a_budget_spent_on_thinking_is_reported() {
    let spent = |output: &str| parse_with(OutputFormat::Qwen, INSIDE, output, true, None).thinking_used_budget;
    assert!(spent("hm") && spent("hm</think>\n"));
    assert!(!spent("hm</think>\nYes") && !spent(" \n"));
    assert!(!parse(INSIDE, "hm").thinking_used_budget);
}

#[test]
fn message_blocks_are_told_apart_by_their_tokens() {
    let blocks = |prompt: &str, output: &str| parse_with(OutputFormat::Inkling, prompt, output, false, None);
    let outcome = blocks(
        "<|message_model|>",
        "<|content_thinking|>a <| b<|end_message|><|message_model|>n<|content_invoke_tool_json|>{\"name\":\"n\",\"args\":{}}<|end_message|><|message_model|><|content_text|>c<|en",
    );
    assert_eq!(
        (outcome.thinking, outcome.reasoning.as_str()),
        (Thinking::Closed, "a <| b")
    );
    assert_eq!((outcome.answer.as_str(), outcome.tool_calls.len()), ("c<|en", 1));
    let cut = blocks(
        "<|message_model|>",
        "<|content_invoke_tool_json|>{\"name\":\"n\",\"args\":{}}",
    );
    assert!(cut.tool_calls.is_empty() && cut.answer.is_empty());
    assert_eq!(
        blocks("<|message_model|><|content_thinking|>", "x").thinking,
        Thinking::Open
    );
}

#[test]
fn plain_output_is_the_answer_as_it_is() {
    let outcome = parse_with(OutputFormat::Plain, INSIDE, "\n<think> a \n", false, None);
    assert_eq!(
        (outcome.thinking, outcome.answer.as_str()),
        (Thinking::None, "\n<think> a \n")
    );
}

#[test]
fn what_ends_thinking_in_the_models_place_ends_it_wherever_it_falls() {
    for (format, prompt) in [
        (OutputFormat::Qwen, INSIDE),
        (OutputFormat::Inkling, "<|message_model|><|content_thinking|>"),
    ] {
        for said in ["", "a", "a <", "a </thi", "<tool_call>\n", "a <|end_mess", "\n<thi"] {
            let mut parser = ThinkingParser::new(format, prompt, None);
            parser.push(said);
            assert!(parser.is_thinking(), "{format:?} {said:?}");
            let end = format.end_of_thinking(!said.is_empty()).unwrap();
            assert_eq!(parser.push(end).answer, "");
            assert!(!parser.is_thinking(), "{format:?} {said:?}");
            assert_eq!(parser.push("b").answer, "b");
            let outcome = parser.finish(false);
            assert!(outcome.reasoning.starts_with(said.trim()), "{:?}", outcome.reasoning);
        }
    }
    assert_eq!(OutputFormat::Plain.end_of_thinking(true), None);
    assert!(!ThinkingParser::new(OutputFormat::Qwen, OFF, None).is_thinking());
    assert!(!ThinkingParser::new(OutputFormat::Inkling, "<|message_model|>", None).is_thinking());
}

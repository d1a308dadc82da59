//! minijinja set up like the Jinja2 environment of transformers, and the limits of one rendering.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, Output, State, Value};
use serde_json::Value as Json;

use super::rewrite::rewrite;
use super::{RenderInput, clock, filters, methods, python, tojson};
use crate::text::LocalTime;
use crate::{Error, Result};

/// Steps of one rendering; each also pays for 64 bytes of text, so this bounds time (about a second) and memory.
const FUEL: u64 = 4_000_000;
/// A template can build lists nested as deep as its steps allow, and these are freed recursively.
const STACK_BYTES: usize = 256 << 20;

/// Carries the words of `raise_exception` through the renderer.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// Renders `source`, on a thread of its own for the sake of its stack.
pub(super) fn render(source: &str, input: &RenderInput<'_>) -> Result<String> {
    let failed = |message: String| Error::TemplateRuntime { message };
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("chat-template".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || render_here(source, input).map_err(|error| translate(&error)))
            .map_err(|error| failed(error.to_string()))?;
        worker.join().unwrap_or_else(|_| Err(failed("the renderer failed".to_owned())))
    })
}

fn render_here(source: &str, input: &RenderInput<'_>) -> Result<String, minijinja::Error> {
    let mut env = Environment::new();
    env.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    env.set_fuel(Some(FUEL));
    env.set_formatter(format);
    env.set_unknown_method_callback(methods::call);
    env.add_filter("tojson", tojson::tojson);
    filters::add(&mut env);
    env.add_function("raise_exception", |state: &State, message: Value| -> Result<Value, minijinja::Error> {
        let message = python::str_of(state, &message)?;
        Err(minijinja::Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
    });
    let now = input.now;
    env.add_function("strftime_now", move |format: &str| -> String {
        let now: LocalTime = now.unwrap_or_else(|| chrono::Local::now().naive_local());
        clock::strftime(now, format)
    });
    env.add_template_owned("chat_template", rewrite(source))?;
    env.get_template("chat_template")?.render(context(input))
}

fn context(input: &RenderInput<'_>) -> Value {
    let messages = parse_arguments(input.messages.clone());
    let mut variables = vec![
        ("messages", Value::from(Serde(messages))),
        ("tools", input.tools.map_or(Value::from(()), |tools| Value::from(Serde(tools)))),
        ("documents", Value::from(())),
        ("add_generation_prompt", Value::from(input.add_generation_prompt)),
    ];
    variables.extend(input.vars.iter().map(|(name, value)| (name.as_str(), Value::from(Serde(value)))));
    Value::from_pairs(variables)
}

/// Templates iterate over a call's arguments, which many clients store as the text of a JSON object.
fn parse_arguments(mut messages: Json) -> Json {
    let calls = messages
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter_map(|message| message.get_mut("tool_calls")?.as_array_mut())
        .flatten();
    for call in calls {
        let Some(arguments) = call.get_mut("function").and_then(|function| function.get_mut("arguments")) else {
            continue;
        };
        if let Some(Ok(object @ Json::Object(_))) = arguments.as_str().map(serde_json::from_str) {
            *arguments = object;
        }
    }
    messages
}

fn format(out: &mut Output, state: &mut State, value: &Value) -> Result<(), minijinja::Error> {
    match value.as_str() {
        Some(text) => out.write_str(text).map_err(minijinja::Error::from),
        None => out.write_str(&python::str_of(state, value)?).map_err(minijinja::Error::from),
    }
}

fn translate(error: &minijinja::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut innermost = error;
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            return Error::TemplateRaised { message: message.clone() };
        }
        if let Some(inner) = current.downcast_ref::<minijinja::Error>() {
            innermost = inner;
        }
        cause = current.source();
    }
    let message = innermost.to_string();
    let too_deep = innermost.detail().is_some_and(|detail| {
        detail.contains(python::TOO_DEEP) || detail.contains("maximum recursion limits")
    });
    match innermost.kind() {
        ErrorKind::OutOfFuel => Error::TemplateLimit { message: "it takes too many steps or writes too much".to_owned() },
        _ if too_deep => Error::TemplateLimit { message },
        // Jinja2 knows its filters and tests when it compiles.
        ErrorKind::SyntaxError | ErrorKind::BadEscape | ErrorKind::UnknownFilter | ErrorKind::UnknownTest => {
            Error::TemplateSyntax { message }
        }
        _ => Error::TemplateRuntime { message },
    }
}

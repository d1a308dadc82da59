//! minijinja set up like the Jinja2 environment of transformers, and the limits of one rendering.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use minijinja::machinery::{self, CompiledTemplate, TemplateConfig};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, Output, State, Value};
use serde_json::Value as Json;

use super::rewrite::rewrite;
use super::{RenderInput, clock, filters, methods, operators, python, tojson};
use crate::text::LocalTime;
use crate::{Error, Result};

/// Steps of one rendering; each also pays for 64 bytes of text, so this bounds time (about a second) and memory.
const FUEL: u64 = 4_000_000;
/// A template can build lists nested as deep as its steps allow, and these are freed recursively.
const STACK_BYTES: usize = 256 << 20;
const TIME_LIMIT: Duration = Duration::from_secs(4);

/// Carries the words of `raise_exception` through the renderer.
#[derive(Debug)]
struct Raised(String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// Renders `source`, on a thread of its own: for the sake of its stack, and because steps bound the rendering but not the
/// compilation. A thread that is late is left to itself.
pub(super) fn render(source: &str, input: &RenderInput<'_>) -> Result<String> {
    let failed = |message: String| Error::TemplateRuntime { message };
    let source = rewrite(source);
    let context = context(input);
    let now = input.now;
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("chat-template".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // Nobody listens any more when the time is up.
            let _ = sender.send(render_here(&source, context, now).map_err(|error| translate(&error)));
        })
        .map_err(|error| failed(error.to_string()))?;
    receiver.recv_timeout(TIME_LIMIT).unwrap_or_else(|error| match error {
        mpsc::RecvTimeoutError::Timeout => Err(Error::TemplateLimit {
            message: "it takes too long".to_owned(),
        }),
        mpsc::RecvTimeoutError::Disconnected => Err(failed("the renderer failed".to_owned())),
    })
}

fn render_here(source: &str, context: Value, now: Option<LocalTime>) -> Result<String, minijinja::Error> {
    let mut env = Environment::new();
    env.set_fuel(Some(FUEL));
    env.set_formatter(format);
    env.set_unknown_method_callback(methods::call);
    env.add_filter("tojson", tojson::tojson);
    filters::add(&mut env);
    env.add_function(
        "raise_exception",
        |state: &State, message: Value| -> Result<Value, minijinja::Error> {
            let message = python::str_of(state, &message)?;
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
        },
    );
    env.add_function("strftime_now", move |format: &str| -> String {
        let now: LocalTime = now.unwrap_or_else(|| chrono::Local::now().naive_local());
        clock::strftime(now, format)
    });
    operators::add_to(&mut env);
    let config = TemplateConfig {
        syntax_config: SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?,
        default_auto_escape: Arc::new(|_| AutoEscape::None),
    };
    let mut compiled = CompiledTemplate::new("chat_template", source, &config)?;
    operators::replace(&mut compiled.instructions);
    compiled.blocks.values_mut().for_each(operators::replace);
    let mut text = String::new();
    let mut out = machinery::make_string_output(&mut text);
    machinery::eval(
        &env,
        &compiled.instructions,
        context,
        &compiled.blocks,
        &mut out,
        AutoEscape::None,
    )?;
    drop(out);
    Ok(text)
}

fn context(input: &RenderInput<'_>) -> Value {
    let messages = parse_arguments(input.messages.clone());
    let mut variables = vec![
        ("messages", Value::from(Serde(messages))),
        (
            "tools",
            input.tools.map_or(Value::from(()), |tools| Value::from(Serde(tools))),
        ),
        ("documents", Value::from(())),
        ("add_generation_prompt", Value::from(input.add_generation_prompt)),
    ];
    variables.extend(
        input
            .vars
            .iter()
            .map(|(name, value)| (name.as_str(), Value::from(Serde(value)))),
    );
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
        let Some(arguments) = call
            .get_mut("function")
            .and_then(|function| function.get_mut("arguments"))
        else {
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
        None => out
            .write_str(&python::str_of(state, value)?)
            .map_err(minijinja::Error::from),
    }
}

fn translate(error: &minijinja::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut innermost = error;
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            return Error::TemplateRaised {
                message: message.clone(),
            };
        }
        if let Some(inner) = current.downcast_ref::<minijinja::Error>() {
            innermost = inner;
        }
        cause = current.source();
    }
    let message = innermost.to_string();
    let too_deep = innermost
        .detail()
        .is_some_and(|detail| detail.contains(python::TOO_DEEP) || detail.contains("maximum recursion limits"));
    match innermost.kind() {
        ErrorKind::OutOfFuel => Error::TemplateLimit {
            message: "it takes too many steps or writes too much".to_owned(),
        },
        _ if too_deep => Error::TemplateLimit { message },
        // Jinja2 knows its filters and tests when it compiles.
        ErrorKind::SyntaxError | ErrorKind::BadEscape | ErrorKind::UnknownFilter | ErrorKind::UnknownTest => {
            Error::TemplateSyntax { message }
        }
        _ => Error::TemplateRuntime { message },
    }
}

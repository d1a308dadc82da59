//! Engine-only generation without the app: `generate TARGET [DRAFTER|-] [BLOCK|off] [TOKENS] [PROMPT] [TEMPERATURE] [ids]`.
//!
//! Prints the text, or with `ids` the token ids, and one line of figures. It links no window system, so it also runs on a bare GPU machine.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::Write;
use std::ops::ControlFlow;

use models::{
    Engine, GenerateRequest, GenerationEvent, LoadRequest, Message, Prompt, Role, SamplingParams, Speculation,
};

fn main() -> Result<(), models::Error> {
    models::prepare_process();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize| args.get(i).map(String::as_str).filter(|a| *a != "-");
    let engine = Engine::start();
    let loaded = engine.load(LoadRequest {
        target: arg(0).unwrap_or("assets/builtin/target").into(),
        drafter: arg(1).map(Into::into),
        ..LoadRequest::default()
    })?;
    eprintln!(
        "{} on {} in {}, {:?}",
        loaded.family, loaded.device, loaded.dtype, loaded.drafter
    );
    let content = arg(4).unwrap_or("Explain how a stack works.").to_owned();
    let message = Message {
        role: Role::User,
        content,
        reasoning: None,
    };
    let request = GenerateRequest {
        speculation: match arg(2) {
            Some("off") => Speculation::Off,
            Some(size) => size.parse().map_or(Speculation::Auto, Speculation::Block),
            None => Speculation::Auto,
        },
        max_tokens: arg(3).and_then(|n| n.parse().ok()),
        ignore_eos: true,
        sampling: SamplingParams {
            temperature: arg(5).and_then(|t| t.parse().ok()).unwrap_or(0.0),
            ..SamplingParams::default()
        },
        ..GenerateRequest::new(Prompt::Messages(vec![message]))
    };
    let ids = arg(6) == Some("ids");
    let print = move |event: GenerationEvent| {
        if let GenerationEvent::Round { reasoning, answer, .. } = event
            && !ids
        {
            print!("{reasoning}{answer}");
            let _ = std::io::stdout().flush();
        }
        ControlFlow::Continue(())
    };
    let done = engine.generate(request, Box::new(print))?;
    if ids {
        println!("{:?}", done.tokens);
    }
    let s = &done.stats;
    eprintln!(
        "\n{} tokens, {:.1} tok/s, {:.0} ms to the first, {:.2} tok/round, {:.0} % accepted",
        s.tokens,
        s.decode_tokens_per_second,
        s.ttft_ms,
        s.speculation.tokens_per_round,
        s.speculation.acceptance_rate * 100.0
    );
    Ok(())
}

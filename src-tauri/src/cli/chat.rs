//! `slipstream chat`: a conversation in the terminal, over the window's own history.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::generate::{Mode, NO_THINKING, Switch, between};
use super::output;
use crate::ipc::{
    AppError, ExactnessChoice, MessageStatus, ModelStatus, Role, SpeculationChoice, TurnEvent, TurnOptions,
};
use crate::library::BUILTIN;
use crate::state::AppState;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Folder of the model, for this conversation; without one the model of the window.
    #[arg(short, long, value_name = "DIR")]
    model: Option<String>,
    /// Folder of a drafter of its own.
    #[arg(long, value_name = "DIR")]
    draft_model: Option<String>,
    /// Go on with the chat of this number.
    #[arg(long, value_name = "N")]
    open: Option<i32>,
    /// Speculation: off, auto or a block size from 2 to 16.
    #[arg(long, value_name = "MODE", value_parser = speculation)]
    spec: Option<SpeculationChoice>,
    /// Whether speculation leaves the text alone, or everything runs as fast as it can.
    #[arg(long, value_enum, value_name = "MODE")]
    exactness: Option<Mode>,
    /// Most tokens of a reply.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// 0 takes the most likely token.
    #[arg(long, value_name = "T", value_parser = between::<0, 100>, allow_negative_numbers = true)]
    temp: Option<f32>,
    /// Fixes all randomness; below 2^53.
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..1 << 53))]
    seed: Option<u64>,
    /// The template's thinking switch.
    #[arg(long, value_enum)]
    thinking: Option<Switch>,
    /// After this many tokens of thinking the model is made to answer.
    #[arg(long, value_name = "N")]
    thinking_budget: Option<u32>,
}

const HELP: &str = "\
/new              starts another chat
/list             lists the chats
/open N           goes on with chat N
/spec off|auto|K  speculation from the next message on
/answer           ends the thinking of the reply that runs
/stop             stops the reply, as Ctrl-C does
/quit             leaves; so does Ctrl-D";

pub(super) fn run(arguments: Arguments) -> Result<ExitCode, AppError> {
    super::runtime()?.block_on(async {
        let state = AppState::open(None).await?;
        let result = converse(&state, &arguments).await;
        state.close().await;
        result
    })
}

struct Conversation<'a> {
    state: &'a AppState,
    lines: UnboundedReceiver<String>,
    interrupts: UnboundedReceiver<()>,
    at_terminal: bool,
    chat_id: Option<i32>,
    options: TurnOptions,
    any_failed: bool,
}

async fn converse(state: &AppState, arguments: &Arguments) -> Result<ExitCode, AppError> {
    let mut conversation = Conversation {
        state,
        lines: read_lines(),
        interrupts: read_interrupts(),
        at_terminal: std::io::stdin().is_terminal(),
        chat_id: None,
        options: options(state, arguments).await?,
        any_failed: false,
    };
    let drafter = arguments.draft_model.as_deref();
    let loading = match &arguments.model {
        // A failure is in the status, and is told there.
        Some(model) => state.library.load_once(model, drafter).await.map(drop),
        None if drafter.is_some() => state.library.load_once(BUILTIN, drafter).await.map(drop),
        None => state.library.start().await,
    };
    if loading.is_ok() {
        // Likewise.
        let _ = state.library.ready().await;
    }
    conversation.tell_model(arguments.thinking_budget.is_some());
    if let Some(chat_id) = arguments.open {
        conversation.open(chat_id).await?;
    }
    conversation.run().await?;
    // A script that sends lines must see that one went wrong.
    let failed = conversation.any_failed && !conversation.at_terminal;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Conversation<'_> {
    async fn run(&mut self) -> Result<(), AppError> {
        loop {
            if self.at_terminal {
                output::prompt("> ");
            }
            let line = tokio::select! {
                line = self.lines.recv() => line,
                Some(()) = self.interrupts.recv() => {
                    output::note("\n/quit leaves");
                    continue;
                }
            };
            let Some(line) = line else { return Ok(()) };
            match line.trim() {
                "" => {}
                "/quit" | "/exit" => return Ok(()),
                command if command.starts_with('/') => {
                    if let Err(error) = self.command(command).await {
                        self.tell_failure(&error);
                    }
                }
                text => self.reply(text).await?,
            }
        }
    }

    async fn command(&mut self, line: &str) -> Result<(), AppError> {
        let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (command, rest.trim()) {
            ("/new", _) => self.chat_id = None,
            ("/stop", _) => output::note("no reply is running"),
            ("/answer", _) => output::note("no reply is thinking"),
            ("/help", _) => output::note(HELP),
            ("/list", _) => {
                for chat in self.state.store.list_chats().await? {
                    let mark = if self.chat_id == Some(chat.id) { '*' } else { ' ' };
                    output::line(&format!("{mark}{:>5}  {}", chat.id, chat.title))?;
                }
            }
            ("/open", number) => match number.parse() {
                Ok(chat_id) => self.open(chat_id).await?,
                Err(_) => output::note("which one? /list shows the numbers"),
            },
            ("/spec", mode) => match speculation(mode) {
                Ok(choice) => self.options.speculation = choice,
                Err(message) => output::note(&message),
            },
            _ => output::note(&format!("{command} is not known here\n{HELP}")),
        }
        Ok(())
    }

    async fn open(&mut self, chat_id: i32) -> Result<(), AppError> {
        let chat = self.state.store.open_chat(chat_id).await?;
        output::note(&chat.summary.title);
        for message in &chat.messages {
            let mark = if message.role == Role::User { "> " } else { "" };
            output::line(&format!("{mark}{}\n", message.content))?;
        }
        self.chat_id = Some(chat_id);
        Ok(())
    }

    /// Sends a message and shows the reply; Ctrl-C and `/stop` end the reply alone.
    async fn reply(&mut self, text: &str) -> Result<(), AppError> {
        let (sender, mut events) = unbounded_channel();
        let (turns, options) = (self.state.turns.clone(), self.options.clone());
        let turn = turns.send(
            self.chat_id,
            text,
            &options,
            Box::new(move |event| sender.send(event).is_ok()),
        );
        tokio::pin!(turn);
        let mut shown = output::Text::new(self.at_terminal && std::io::stdout().is_terminal());
        // Lines of a script wait for the reply; a person may ask to stop it.
        let mut reading = self.at_terminal;
        let ended = loop {
            tokio::select! {
                Some(event) = events.recv() => if self.show(event, &mut shown).is_err() {
                    turns.stop();
                },
                ended = &mut turn => break ended,
                Some(()) = self.interrupts.recv() => turns.stop(),
                line = self.lines.recv(), if reading => match line.as_deref().map(str::trim) {
                    Some("/stop") => turns.stop(),
                    Some("/answer") => turns.answer_now(),
                    Some(_) => output::note("a reply is running; /stop or Ctrl-C ends it, /answer its thinking"),
                    None => reading = false,
                },
            }
        };
        while let Ok(event) = events.try_recv() {
            self.show(event, &mut shown)?;
        }
        shown.finish("", "")?;
        match ended {
            Ok(message) => {
                if message.status == MessageStatus::Stopped {
                    output::note("stopped");
                }
                if let Some(run) = &message.run {
                    output::note(&output::figures(run));
                }
            }
            Err(error) => {
                self.any_failed = true;
                self.tell_failure(&error);
            }
        }
        Ok(())
    }

    fn show(&mut self, event: TurnEvent, shown: &mut output::Text) -> std::io::Result<()> {
        match event {
            TurnEvent::Started { chat, .. } => self.chat_id = Some(chat.id),
            TurnEvent::Delta { reasoning, answer, .. } => shown.push(&reasoning, &answer)?,
            // The end is told by the turn itself.
            TurnEvent::Prefill { .. } | TurnEvent::Done { .. } | TurnEvent::Failed { .. } => {}
        }
        Ok(())
    }

    fn tell_failure(&self, error: &AppError) {
        output::note(&format!("slipstream: {}", error.message));
        if let Some(hint) = &error.hint {
            output::note(&format!("  hint: {hint}"));
        }
    }

    fn tell_model(&self, has_budget: bool) {
        match self.state.library.status() {
            ModelStatus::Ready {
                model,
                speculation_note,
                can_speculate,
                can_think,
                ..
            } => {
                let note = model.note.map(|note| format!("\n{note}")).unwrap_or_default();
                let can = if can_speculate {
                    "can speculate"
                } else {
                    "cannot speculate"
                };
                output::note(&format!("{} ({can}: {speculation_note}){note}", model.name));
                if has_budget && !can_think {
                    output::note(NO_THINKING);
                }
            }
            ModelStatus::Failed { error, .. } => self.tell_failure(&error),
            ModelStatus::None | ModelStatus::Loading { .. } => {}
        }
        if self.at_terminal {
            output::note("/help lists the commands");
        }
    }
}

/// The window's options, under what the command line says.
async fn options(state: &AppState, arguments: &Arguments) -> Result<TurnOptions, AppError> {
    let kept = state.store.settings().await?.options;
    Ok(TurnOptions {
        speculation: arguments.spec.unwrap_or(kept.speculation),
        exactness: match arguments.exactness {
            Some(Mode::Exact) => ExactnessChoice::Exact,
            Some(Mode::Fast) => ExactnessChoice::Fast,
            None => kept.exactness,
        },
        max_tokens: arguments.max_tokens.or(kept.max_tokens),
        temperature: arguments.temp.map(f64::from).or(kept.temperature),
        seed: arguments.seed.map(|seed| seed as f64).or(kept.seed),
        thinking: arguments.thinking.map(|switch| switch == Switch::On).or(kept.thinking),
        thinking_budget: arguments.thinking_budget.or(kept.thinking_budget),
        ..kept
    })
}

pub(super) fn speculation(text: &str) -> Result<SpeculationChoice, String> {
    match (text, text.parse()) {
        ("off", _) => Ok(SpeculationChoice::Off),
        ("auto", _) => Ok(SpeculationChoice::Auto),
        (_, Ok(size @ 2..=16)) => Ok(SpeculationChoice::Block { size }),
        _ => Err("off, auto or a block size from 2 to 16 is needed".to_owned()),
    }
}

/// Lines of standard input, read on a thread of their own: nothing can wait for both otherwise.
fn read_lines() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Each Ctrl-C, so that none is lost between two looks.
fn read_interrupts() -> UnboundedReceiver<()> {
    let (sender, interrupts) = unbounded_channel();
    tokio::spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).is_ok() {} });
    interrupts
}

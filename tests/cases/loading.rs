//! Checkpoints and configs: loads with the right ids, or refused by the right name. Through the engine as the app uses it.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use models::{
    DrafterState, Engine, Error, GenerateRequest, GenerationEvent, Inspection, LoadRequest, Loaded, MtpLocation,
    Prompt, Speculation, inspect,
};
use serde_json::Value;
use tests::{ids, json};

use super::materialise::{fixture, materialise};
use super::{Check, case_of_child, in_child, list, number, run, same, text};

/// A refused config costs no more than this, in milliseconds on a slow machine.
const REFUSED_WITHIN_MS: u128 = 2000;

/// Ours to the cases' names of kinds. A head asked of a folder that holds none is a missing tensor to them.
fn kind(error: &Error) -> &'static str {
    error.kind()
}

/// What became of a case.
enum Outcome {
    Loads {
        engine: Engine,
        loaded: Box<Loaded>,
        inspection: Option<Box<Inspection>>,
    },
    Refused {
        kind: &'static str,
        text: String,
    },
}

fn refused(error: &Error) -> Outcome {
    Outcome::Refused {
        kind: kind(error),
        text: format!("{error} {}", error.hint().unwrap_or_default()),
    }
}

fn outcome(case: &Value, dir: &Path) -> Result<Outcome, String> {
    let drafter = case.get("drafter").map(|_| dir.join("drafter"));
    let inspection = inspect(&dir.join("model"));
    let engine = Engine::start();
    let loaded = engine.load(LoadRequest {
        target: dir.join("model"),
        drafter: drafter.clone(),
        ..LoadRequest::default()
    });
    let is_pair = drafter.is_some();
    // The app shows what `inspect` says before it loads: the two must agree.
    match (&inspection, &loaded) {
        (Ok(inspection), Ok(_)) if inspection.problems.is_empty() => {}
        (Ok(inspection), Err(e)) if !inspection.problems.is_empty() || is_pair || e.kind() == "not_standalone" => {}
        (Err(_), Err(_)) => {}
        (inspection, loaded) => {
            return Err(format!(
                "inspect says {:?}, the loader {:?}",
                inspection.as_ref().map(|i| &i.problems),
                loaded.as_ref().map(|_| ())
            ));
        }
    }
    Ok(match loaded {
        Err(e) => refused(&e),
        Ok(loaded) => Outcome::Loads {
            engine,
            loaded: Box::new(loaded),
            inspection: inspection.ok().map(Box::new),
        },
    })
}

fn check(case: &Value) -> Check {
    let dir = tempfile::tempdir().unwrap();
    materialise(case, dir.path());
    let start = Instant::now();
    let outcome = outcome(case, dir.path())?;
    let took = start.elapsed().as_millis();
    if matches!(outcome, Outcome::Refused { .. }) && took > REFUSED_WITHIN_MS {
        return Err(format!("refused after {took} ms"));
    }
    let expected = &case["expect"];
    match expected["any_of"].as_array() {
        None => agrees(expected, &outcome, case),
        Some(any) => {
            let failures: Vec<String> = any.iter().filter_map(|e| agrees(e, &outcome, case).err()).collect();
            if failures.len() < any.len() {
                Ok(())
            } else {
                Err(format!("no accepted outcome: {}", failures.join("; ")))
            }
        }
    }
}

fn agrees(expected: &Value, outcome: &Outcome, case: &Value) -> Check {
    match outcome {
        Outcome::Refused { kind, text: said } => {
            if expected["verdict"] != "refused" {
                return Err(format!("refused: {kind}: {said}"));
            }
            if !list(&expected["kind"]).iter().any(|k| k == kind) {
                return Err(format!("kind {kind} ({said}), expected {}", expected["kind"]));
            }
            let missing = list(&expected["names"])
                .iter()
                .find(|group| !list(group).iter().any(|name| said.contains(text(name))));
            missing.map_or(Ok(()), |group| Err(format!("{said:?} names none of {group}")))
        }
        Outcome::Loads {
            engine,
            loaded,
            inspection,
        } => {
            same("verdict", "loads", text(&expected["verdict"]))?;
            check_head(expected, loaded, inspection.as_deref(), case)?;
            check_ids(expected, engine, case)
        }
    }
}

fn check_head(expected: &Value, loaded: &Loaded, inspection: Option<&Inspection>, case: &Value) -> Check {
    let inspection = inspection.ok_or("the loader takes what `inspect` refuses")?;
    let has_drafter = case.get("drafter").is_some();
    let place = match inspection.mtp.location {
        _ if has_drafter => "drafter",
        MtpLocation::Own => "own",
        MtpLocation::Stray => "stray",
        MtpLocation::Subfolder => "subfolder",
        MtpLocation::Drafter => "drafter",
        MtpLocation::None => "none",
    };
    same("mtp", place, text(&expected["mtp"]))?;
    if let Some(count) = expected["mtp_tensors"].as_u64().filter(|_| !has_drafter) {
        same("mtp tensors", inspection.mtp.tensors as u64, count)?;
    }
    match (&loaded.drafter, place) {
        (DrafterState::Ready { .. }, "none") => return Err("a drafter is ready, but there is none".to_owned()),
        (DrafterState::Unavailable { reason }, at) if at != "none" => return Err(format!("no drafter: {reason}")),
        (DrafterState::Unavailable { reason }, _) if reason.is_empty() => return Err("no reason is given".to_owned()),
        _ => {}
    }
    if expected["warning"] == true && loaded.warnings.is_empty() {
        return Err("nothing is said about it".to_owned());
    }
    Ok(())
}

/// Ids and accept lengths of the fixture that the case names (`family:layout`).
fn reference(key: &str) -> (Value, Value) {
    let (family, layout) = key.split_once(':').unwrap();
    let all = json(&fixture(family).join("ref.json"));
    let layout = all[layout].clone();
    (all, layout)
}

fn check_ids(expected: &Value, engine: &Engine, case: &Value) -> Check {
    let own = text(&case["base"]).replace('/', ":");
    let key = expected["ids"].as_str().unwrap_or(&own);
    let (all, layout) = reference(key);
    let want = match &expected["ids"] {
        Value::Array(_) => ids(&expected["ids"]),
        _ => ids(&layout["greedy_short"]),
    };
    let generate = |speculation| {
        let request = GenerateRequest {
            max_tokens: Some(want.len()),
            ignore_eos: true,
            speculation,
            ..GenerateRequest::new(Prompt::Ids(ids(&all["prompt_short"])))
        };
        let go_on = |_: GenerationEvent| ControlFlow::Continue(());
        engine
            .generate(request, Box::new(go_on))
            .map_err(|e| format!("generating: {e}"))
    };
    for _ in 0..case["expect"]["repeat"].as_u64().unwrap_or(1).max(1) {
        same("ids", generate(Speculation::Off)?.tokens, want.clone())?;
        if expected["mtp"] == "none" {
            continue;
        }
        for block in 2..=6 {
            let reply = generate(Speculation::Block(block))?;
            same(&format!("ids at block {block}"), reply.tokens, want.clone())?;
            let accepted = reply.stats.speculation.accepted_per_round;
            if let Some(key) = expected["accept_block3"].as_str().filter(|_| block == 3) {
                let lens = list(&reference(key).1["mtp_block3_short"]["accept_lens"]).to_vec();
                same("accept lengths", accepted, lens.iter().map(number).collect())?;
            }
        }
    }
    Ok(())
}

/// Cases about sizes that nobody has run once more where there is little memory.
fn check_all(folder: &str, child: &str) {
    run(folder, |case| {
        check(case)?;
        let id = text(&case["id"]);
        if ["huge", "bomb", "header", "deep"].iter().any(|word| id.contains(word)) {
            in_child(child, id)?;
        }
        Ok(())
    });
}

#[test]
fn checkpoints() {
    check_all("checkpoints", "cases::loading::one_checkpoint_with_little_memory");
}

#[test]
fn configs() {
    check_all("configs", "cases::loading::one_config_with_little_memory");
}

/// The child's part; by itself it has nothing to do.
#[test]
fn one_checkpoint_with_little_memory() {
    if let Some(case) = case_of_child("checkpoints") {
        check(&case).unwrap();
    }
}

/// The child's part; by itself it has nothing to do.
#[test]
fn one_config_with_little_memory() {
    if let Some(case) = case_of_child("configs") {
        check(&case).unwrap();
    }
}

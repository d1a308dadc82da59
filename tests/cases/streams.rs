//! Token pieces in bursts: what may be shown after each.

use models::text::TextStream;
use serde_json::Value;

use super::{Check, list, number, run, same, text};

#[test]
fn streams() {
    run("streams", |case| {
        let pieces: Vec<Vec<u8>> = list(&case["pieces"]).iter().map(|hex| bytes(text(hex))).collect();
        for burst in list(&case["bursts"]) {
            let sizes: Vec<usize> = list(burst).iter().map(number).collect();
            check_stream(case, &pieces, &sizes).map_err(|error| format!("bursts {sizes:?}: {error}"))?;
        }
        Ok(())
    });
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn check_stream(case: &Value, pieces: &[Vec<u8>], bursts: &[usize]) -> Check {
    let expect = &case["expect"];
    let stops: Vec<String> = list(&case["stops"]).iter().map(|stop| text(stop).to_owned()).collect();
    let end_at = case["eos_at"].as_u64().map(|at| usize::try_from(at).unwrap());
    let deltas: Vec<&str> = list(&expect["deltas"]).iter().map(text).collect();
    let least: Vec<usize> = list(&expect["least_chars"]).iter().map(number).collect();

    let mut stream = TextStream::new(&stops);
    let mut shown = String::new();
    let (mut next, mut has_ended) = (0, false);
    for size in bursts {
        let burst = next..next + size;
        next = burst.end;
        for at in burst {
            has_ended = has_ended || Some(at) == end_at || stream.push(&pieces[at], &mut shown).is_break();
            if has_ended {
                break;
            }
        }
        for never in list(&expect["never"]) {
            if shown.contains(text(never)) {
                return Err(format!("{shown:?} shows {never}"));
            }
        }
        if has_ended {
            break;
        }
        let ceiling = deltas[..next].concat();
        if !ceiling.starts_with(&shown) {
            return Err(format!(
                "after token {next} {shown:?} is shown, at most {ceiling:?} may be"
            ));
        }
        if shown.chars().count() < least[next - 1] {
            return Err(format!("after token {next} only {shown:?} is shown"));
        }
    }
    stream.finish(&mut shown);

    let texts = [expect["text"].as_str(), expect["or_text"].as_str()];
    if !texts.contains(&Some(shown.as_str())) {
        return Err(format!("text is {shown:?}, expected {texts:?}"));
    }
    same(
        "finish",
        if has_ended { "stop" } else { "length" },
        text(&expect["finish"]),
    )?;
    same("stop", stream.stop(), expect["stop"].as_str())?;
    same("used tokens", stream.used_tokens(), number(&expect["used_tokens"]))
}

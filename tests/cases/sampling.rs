//! Table test of the sampler over the shared cases.

use mlx_rs::Array;
use models::generate::accept;
use models::sampler::Sampler;
use models::{Error, SamplingParams};
use serde_json::Value;
use tests::{cases, floats, ids, json};

fn number(v: &Value) -> f32 {
    match v.as_str() {
        Some("nan") => f32::NAN,
        Some("inf") => f32::INFINITY,
        Some("-inf") => f32::NEG_INFINITY,
        _ => v.as_f64().expect("a number") as f32,
    }
}

fn logits(v: &Value) -> Array {
    let values: Vec<f32> = v.as_array().expect("logits").iter().map(number).collect();
    Array::from_slice(&values, &[1, 1, values.len() as i32])
}

fn params(settings: &Value) -> SamplingParams {
    let base = SamplingParams::default();
    let float = |name: &str, default: f32| settings.get(name).map_or(default, number);
    SamplingParams {
        temperature: float("temperature", 1.0),
        top_p: float("top_p", base.top_p),
        top_k: settings.get("top_k").and_then(Value::as_u64).unwrap_or(0) as usize,
        min_p: float("min_p", base.min_p),
        repetition_penalty: float("repetition_penalty", base.repetition_penalty),
        presence_penalty: float("presence_penalty", base.presence_penalty),
        frequency_penalty: float("frequency_penalty", base.frequency_penalty),
        logit_bias: settings
            .get("logit_bias")
            .and_then(Value::as_object)
            .map(|m| m.iter().map(|(k, v)| (k.parse().unwrap(), number(v))).collect())
            .unwrap_or_default(),
        ..base
    }
}

fn matches(expect: &Value, got: &Result<Vec<f32>, Error>) -> Result<(), String> {
    if let Some(options) = expect.get("any_of").and_then(Value::as_array) {
        let reasons: Vec<String> = options.iter().filter_map(|o| matches(o, got).err()).collect();
        return if reasons.len() < options.len() {
            Ok(())
        } else {
            Err(reasons.join("; "))
        };
    }
    match (expect.get("error").and_then(Value::as_str), got) {
        (Some(kind), Err(e)) if e.kind() == kind => Ok(()),
        (Some(kind), got) => Err(format!("expected {kind}, got {got:?}")),
        (None, Err(e)) => Err(e.to_string()),
        (None, Ok(probs)) => {
            let support: Vec<u32> = (0u32..)
                .zip(probs)
                .filter(|(_, p)| **p > 1e-9)
                .map(|(i, _)| i)
                .collect();
            if support != ids(&expect["support"]) {
                return Err(format!("support {support:?}"));
            }
            for (p, want) in probs.iter().zip(expect["probs"].as_array().unwrap()) {
                if (p - number(want)).abs() > 1e-6 {
                    return Err(format!("{probs:?}"));
                }
            }
            Ok(())
        }
    }
}

fn check(case: &Value) -> Result<(), String> {
    let history = case.get("history").map(ids).unwrap_or_default();
    let settings = params(&case["settings"]);
    let expect = &case["expect"];
    let Some(rows) = case.get("rows").and_then(Value::as_array) else {
        let row = logits(&case["logits"]);
        let got = Sampler::new(&settings, row.size())
            .and_then(|s| s.distribution(&row, &s.count(&history)))
            .map(|p| floats(&p));
        return matches(expect, &got);
    };
    let drafts = ids(&case["drafts"]);
    let width = rows[0].as_array().unwrap().len();
    let sampler = Sampler::new(&settings, width).map_err(|e| e.to_string())?;
    for (i, (row, want)) in rows.iter().zip(expect["rows"].as_array().unwrap()).enumerate() {
        let seen: Vec<u32> = history.iter().chain(&drafts[..i]).copied().collect();
        let got = sampler
            .distribution(&logits(row), &sampler.count(&seen))
            .map(|p| floats(&p));
        matches(want, &got).map_err(|e| format!("row {i}: {e}"))?;
    }
    let Some(accepted) = expect.get("accepted").and_then(Value::as_u64) else {
        return Ok(());
    };
    let stacked: Vec<Array> = rows.iter().map(logits).collect();
    let block = mlx_rs::ops::concatenate(&stacked, 1).unwrap();
    let proposed = Array::from_slice(&drafts, &[1, drafts.len() as i32]);
    let (chosen, _) = sampler
        .choose_rows(&block, history.len(), Some(&proposed), &sampler.count(&history))
        .unwrap();
    chosen.eval().unwrap();
    let verdict = accept(&drafts, chosen.as_slice::<u32>(), usize::MAX, &[]);
    let emitted = ids(&expect["emitted"]);
    if verdict.accepted as u64 != accepted || verdict.tokens != emitted {
        return Err(format!("{verdict:?}, expected {accepted} accepted and {emitted:?}"));
    }
    Ok(())
}

#[test]
fn sampling() {
    let Some(root) = cases() else {
        eprintln!("skipped: no cases here (CASES_ROOT)");
        return;
    };
    let file = json(&root.join("sampling/cases.json"));
    let cases = file["cases"].as_array().unwrap();
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|c| check(c).err().map(|e| format!("{}: {e}", c["id"])))
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {}:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

/// Draws follow the distribution that the filters leave: a chi-square test with a false-alarm rate below 1 in 10,000
/// (seeds are fixed, so it gives the same answer each time).
#[test]
fn draws_follow_the_distribution() {
    let row = logits(&serde_json::json!([2.0, 1.0, 0.5, 0.0, -1.0, 3.0]));
    let settings = SamplingParams {
        temperature: 0.9,
        top_k: 5,
        top_p: 0.98,
        ..SamplingParams::default()
    };
    let probs = floats(&Sampler::new(&settings, 6).unwrap().distribution(&row, &None).unwrap());
    let n = 4000;
    let mut seen = [0usize; 6];
    for seed in 0..40u64 {
        let sampler = Sampler::new(
            &SamplingParams {
                seed,
                ..settings.clone()
            },
            6,
        )
        .unwrap();
        let draws: Vec<Array> = (0..n / 40).map(|i| sampler.choose(&row, i, &None).unwrap().0).collect();
        let all = mlx_rs::ops::concatenate(&draws, 1).unwrap();
        all.eval().unwrap();
        for id in all.as_slice::<u32>() {
            seen[*id as usize] += 1;
        }
    }
    let mut chi = 0.0;
    for (count, p) in seen.iter().zip(&probs) {
        if *p == 0.0 {
            assert_eq!(*count, 0, "a filtered token was drawn");
        } else {
            let expected = f64::from(*p) * n as f64;
            chi += (*count as f64 - expected).powi(2) / expected;
        }
    }
    // 99.99 % point of chi-square with 4 degrees of freedom.
    assert!(chi < 23.5, "chi-square {chi}: {seen:?} against {probs:?}");
}

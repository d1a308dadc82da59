//! The shared cases of the hub: selections, and scripts of faults played against downloads in processes of their own.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use app::hub::RemoteFile;
use app::hub::select::select;
use serde::Deserialize;
use serde_json::Value;
use tests::fake_hub::{Body, FakeHub, File, Repo, Rule};

use super::child::{Job, Outcome};
use super::{files, found, hash};

type Check = Result<(), String>;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Case {
    Download(Box<Download>),
    Select(Box<Select>),
}

#[derive(Deserialize)]
struct Download {
    repo: RepoScript,
    token: Option<String>,
    disk_free: Option<u64>,
    phases: Vec<Phase>,
}

#[derive(Deserialize)]
struct RepoScript {
    id: String,
    commit: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    file: FileScript,
    #[serde(default)]
    rules: Vec<Rule>,
    kill_after: Option<u64>,
    expect: Option<Expect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileScript {
    path: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    seed: u64,
    text: Option<String>,
    #[serde(default)]
    lfs: bool,
    commit: Option<String>,
    sha256: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    result: String,
    #[serde(default)]
    kind: Vec<String>,
    /// Of each group one must be in the words.
    #[serde(default)]
    names: Vec<Vec<String>>,
    file: Option<String>,
    served: Option<Bounds>,
    first_get_from: Option<u64>,
    second_get_from: Option<Bounds>,
    content_gets: Option<Bounds>,
    wait_ms_min: Option<u64>,
    authorization_on_content_host: Option<bool>,
    within_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    min: u64,
    max: u64,
}

impl Bounds {
    fn holds(&self, what: &str, value: u64) -> Check {
        if (self.min..=self.max).contains(&value) {
            return Ok(());
        }
        Err(format!("{what} is {value}, expected {} to {}", self.min, self.max))
    }
}

#[derive(Deserialize)]
struct Select {
    files: Vec<String>,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    expect: Selected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Selected {
    selected: Option<BTreeSet<String>>,
    #[serde(default)]
    may: BTreeSet<String>,
    #[serde(default)]
    never: BTreeSet<String>,
    error: Option<String>,
    #[serde(default)]
    lists: Vec<String>,
}

fn check(what: &str, holds: bool) -> Check {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

#[test]
fn hub() {
    let Some(path) = tests::cases()
        .map(|root| root.join("hub/cases.json"))
        .filter(|path| path.is_file())
    else {
        eprintln!("skipped: no cases here (CASES_ROOT)");
        return;
    };
    let mut document = tests::json(&path);
    let Value::Array(cases) = document["cases"].take() else {
        panic!("{} holds no cases", path.display());
    };
    // Scripts mostly wait: all at the same time.
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = cases
            .iter()
            .map(|case| {
                let id = case["id"].as_str().unwrap_or("?");
                (id, scope.spawn(|| play(case)))
            })
            .collect();
        running
            .into_iter()
            .filter_map(|(id, case)| match case.join() {
                Ok(result) => Some(format!("{id}: {}", result.err()?)),
                Err(_) => Some(format!("{id}: panicked")),
            })
            .collect()
    });
    assert!(
        failures.is_empty(),
        "{} of {} cases of hub fail:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
    eprintln!("hub: {} cases pass", cases.len());
}

fn play(case: &Value) -> Check {
    match Case::deserialize(case).map_err(|error| error.to_string())? {
        Case::Select(case) => selects(&case),
        Case::Download(case) => downloads(&case),
    }
}

fn selects(case: &Select) -> Check {
    let remote: Vec<RemoteFile> = case
        .files
        .iter()
        .map(|path| RemoteFile {
            path: path.clone(),
            size: Some(1),
            sha256: None,
            git_oid: None,
        })
        .collect();
    let expect = &case.expect;
    match (select(&remote, &case.include, &case.exclude), &expect.error) {
        (Ok(chosen), None) => {
            let chosen: BTreeSet<String> = chosen.into_iter().map(|file| file.path.clone()).collect();
            let forbidden: Vec<_> = chosen.intersection(&expect.never).collect();
            check(&format!("{forbidden:?} must never be written"), forbidden.is_empty())?;
            let needed = expect.selected.clone().unwrap_or_default();
            let missing: Vec<_> = needed.difference(&chosen).collect();
            check(&format!("{missing:?} not selected"), missing.is_empty())?;
            let besides: Vec<_> = chosen
                .iter()
                .filter(|path| !needed.contains(*path) && !expect.may.contains(*path))
                .collect();
            check(&format!("{besides:?} selected besides"), besides.is_empty())
        }
        (Ok(chosen), Some(error)) => Err(format!("{} selected, expected {error}", chosen.len())),
        // A hostile name may stop everything.
        (Err(error), None) if error.kind() == "unsafe_path" && !expect.never.is_empty() => Ok(()),
        (Err(error), None) => Err(format!("{}: {error}", error.kind())),
        (Err(error), Some(kind)) => {
            check(
                &format!("kind is {}, expected {kind}", error.kind()),
                error.kind() == kind,
            )?;
            let words = format!("{error} {}", error.hint().unwrap_or_default());
            let missing: Vec<_> = expect
                .lists
                .iter()
                .filter(|name| !words.contains(name.as_str()))
                .collect();
            check(&format!("{missing:?} not named in: {words}"), missing.is_empty())
        }
    }
}

fn downloads(case: &Download) -> Check {
    let home = tempfile::tempdir().unwrap();
    let hub = FakeHub::start();
    for (number, phase) in case.phases.iter().enumerate() {
        plays(case, phase, &hub, home.path()).map_err(|error| format!("phase {number}: {error}"))?;
    }
    Ok(())
}

fn plays(case: &Download, phase: &Phase, hub: &FakeHub, home: &Path) -> Check {
    let script = &phase.file;
    let body = match &script.text {
        Some(text) => Body::text(text),
        None => Body::formula(script.size, script.seed),
    };
    let file = match script.lfs {
        true => File::large(&script.path, body),
        false => File::git(&script.path, body),
    };
    let etag = file.etag();
    hub.add(Repo::new(&case.repo.id, [file]).commit(script.commit.as_ref().unwrap_or(&case.repo.commit)));
    hub.clear_rules();
    hub.forget_requests();
    hub.hold_after(phase.kill_after);
    for rule in &phase.rules {
        hub.rule(rule.clone());
    }
    let job = Job {
        repo: case.repo.id.clone(),
        include: vec![script.path.clone()],
        token: case.token.clone(),
        disk_free: case.disk_free,
        // The hold must not look like a stall before the kill.
        stall_ms: if phase.kill_after.is_some() { 60_000 } else { 1000 },
        ..Job::new(hub, home)
    };
    let began = Instant::now();
    let running = job.start();
    let repo_dir = home
        .join("hub")
        .join(format!("models--{}", case.repo.id.replace('/', "--")));
    let absent = || {
        let named = found(&repo_dir.join("snapshots"), &script.path);
        let blob = files(&repo_dir.join("blobs"))
            .into_iter()
            .find(|path| path.ends_with(&etag));
        match named.or(blob) {
            Some(path) => Err(format!("{} is there", path.display())),
            None => Ok(()),
        }
    };
    if phase.kill_after.is_some() {
        let held = hub.until_held(Duration::from_secs(60));
        // What was sent has to arrive: the case counts what was sent.
        std::thread::sleep(Duration::from_millis(100));
        let unfinished = absent();
        running.kill();
        check("the download never came to the byte to be killed at", held)?;
        return unfinished;
    }
    let outcome = running.end();
    let spent = began.elapsed();
    let Some(expect) = &phase.expect else { return Ok(()) };
    judge(expect, script, &outcome, hub, spent)?;
    if expect.file.as_deref() == Some("absent") || expect.result == "error" {
        absent()?;
    }
    Ok(())
}

fn judge(expect: &Expect, script: &FileScript, outcome: &Outcome, hub: &FakeHub, spent: Duration) -> Check {
    let gets = hub.content_gets();
    match (&outcome.dir, &outcome.error, expect.result.as_str()) {
        (Some(dir), None, "ok") => {
            let path = Path::new(dir).join(&script.path);
            check("the file is not there", path.is_file())?;
            check("the file has other bytes", hash(&path) == script.sha256)?;
        }
        (None, Some((kind, words)), "error") => {
            check(
                &format!("kind is {kind}, expected one of {:?}: {words}", expect.kind),
                expect.kind.contains(kind),
            )?;
            for group in &expect.names {
                check(
                    &format!("none of {group:?} in: {words}"),
                    group.iter().any(|name| words.contains(name)),
                )?;
            }
        }
        (_, _, result) => return Err(format!("{outcome:?}, expected {result}")),
    }
    if let Some(bounds) = &expect.served {
        bounds.holds("served", hub.served())?;
    }
    if let Some(from) = expect.first_get_from {
        let first = gets.first().map(|get| get.from());
        check(
            &format!("first get from {first:?}, expected {from}"),
            first == Some(from),
        )?;
    }
    if let Some(bounds) = &expect.second_get_from {
        bounds.holds("second get from", gets.get(1).ok_or("no second get")?.from())?;
    }
    if let Some(bounds) = &expect.content_gets {
        bounds.holds("content gets", gets.len() as u64)?;
    }
    if let Some(least) = expect.wait_ms_min {
        let [first, second, ..] = gets.as_slice() else {
            return Err("no second get".into());
        };
        let waited = second.at - first.at;
        check(
            &format!("asked again after {waited:?}"),
            waited >= Duration::from_millis(least),
        )?;
    }
    if let Some(expected) = expect.authorization_on_content_host {
        let requests = hub.requests();
        let seen = requests
            .iter()
            .any(|request| request.content_host && request.authorization.is_some());
        check("authorization on the content host", seen == expected)?;
    }
    let limit = Duration::from_millis(expect.within_ms.unwrap_or(60_000));
    check(&format!("took {spent:?}"), spent <= limit)
}

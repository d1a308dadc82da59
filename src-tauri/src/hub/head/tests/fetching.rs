//! Fetching them, and going on after every kind of end.

use super::*;

#[tokio::test]
async fn only_the_heads_bytes_come() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let all: u64 = repo
        .files
        .iter()
        .filter(|(p, _)| p.ends_with("tensors"))
        .map(|(_, b)| b.len() as u64)
        .sum();
    let head = 64 * 1024 * 6 + 12 + 10;
    assert_eq!((plan.tensors(), plan.in_place_of(), plan.present()), (4, all, 0));
    assert!(plan.total() > head && plan.total() < head + 1000, "{}", plan.total());
    assert_eq!((repo.asked("m-1.safetensors"), repo.asked("m-3.safetensors")), (0, 0));
    let planned = repo.served();

    let told = Mutex::new(Vec::new());
    let progress = |there| told.lock().unwrap().push(there);
    let dir = fetch::fetch(&repo, &plan, &progress, &CancelToken::new())
        .await
        .unwrap();
    assert_eq!(dir, root.path().join("tiny-org--tiny-model").join(COMMIT));
    assert_eq!(
        names_in(&dir),
        ["config.json", "model.safetensors", "slipstream-head.json"]
    );
    assert_eq!(
        std::fs::read(dir.join("config.json")).unwrap(),
        repo.files["config.json"]
    );
    holds(&dir.join("model.safetensors"), &HEAD);
    assert_eq!(
        repo.served() - planned,
        head + repo.files["config.json"].len() as u64,
        "each byte once"
    );
    assert_eq!(repo.asked("m-2.safetensors"), 1 + 2, "the header, and the two places");
    let told = told.into_inner().unwrap();
    assert!(
        told.is_sorted() && told.last() == Some(&plan.total()),
        "{:?}",
        told.last()
    );
    assert_eq!(
        (plan.present(), names_in(dir.parent().unwrap())),
        (plan.total(), vec![COMMIT.to_owned()])
    );

    let before = repo.served();
    assert_eq!(repo.fetch(&plan).await.unwrap(), dir);
    assert_eq!(repo.served(), before, "it is there");
}

#[tokio::test]
async fn the_folder_says_what_it_is_and_what_was_checked() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let dir = repo.fetch(&plan).await.unwrap();
    let record: Value = serde_json::from_slice(&std::fs::read(dir.join("slipstream-head.json")).unwrap()).unwrap();
    assert_eq!(
        (&record["repo"], &record["commit"]),
        (&json!("tiny-org/tiny-model"), &json!(COMMIT))
    );
    let [config, weights] = &record["files"].as_array().unwrap()[..] else {
        panic!("{record}");
    };
    assert_eq!(
        (&config["path"], &config["checked"]),
        (&json!("config.json"), &json!(true))
    );
    assert_eq!(
        (&weights["path"], &weights["checked"]),
        (&json!("model.safetensors"), &json!(false))
    );
    let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
    assert_eq!(weights["sha256"], json!(hex(Sha256::digest(&bytes))));
    assert_eq!(weights["from"][0]["path"], "m-2.safetensors");
    assert_eq!(
        weights["from"][0]["hash"],
        json!(hex(Sha256::digest(&repo.files["m-2.safetensors"])))
    );
    assert_eq!(weights["from"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_file_that_is_all_head_is_taken_as_it_is_and_checked() {
    let head = safetensors_of(&HEAD, None);
    let model = safetensors_of(&[("model.w", Dtype::U8, &[9])], None);
    let mut repo = Repo::new(vec![("m.safetensors", model), ("mtp.safetensors", head.clone())])
        .index(&[("model.w", "m.safetensors")]);
    let root = tempfile::tempdir().unwrap();
    let plan = repo.plan(root.path()).await.unwrap();
    assert_eq!(repo.asked("m.safetensors"), 0, "a file beside the index comes first");
    repo.files.get_mut("mtp.safetensors").unwrap()[5000] ^= 1;
    let failure = repo.fetch(&plan).await.unwrap_err();
    assert_eq!(failure.kind(), "hash_mismatch");
    assert!(!plan.dir().exists());
    assert!(
        plan.present() < 100,
        "what came was thrown away, but for the config: {}",
        plan.present()
    );
    repo.files.insert("mtp.safetensors".to_owned(), head.clone());
    let dir = repo.fetch(&plan).await.unwrap();
    assert_eq!(std::fs::read(dir.join("model.safetensors")).unwrap(), head);
    let record = std::fs::read_to_string(dir.join("slipstream-head.json")).unwrap();
    assert!(!record.contains(r#""checked": false"#), "{record}");
}

/// A connection that breaks costs nothing twice.
#[tokio::test]
async fn a_broken_connection_goes_on_from_the_last_byte() {
    let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let before = repo.served();
    for at in [10_000, 100_000, 300_000] {
        repo.breaks_after = Some(before + at);
        assert_eq!(repo.fetch(&plan).await.unwrap_err().kind(), "stalled");
        let prefix = plan.outputs[1].prefix.len() as u64;
        assert_eq!(plan.present(), repo.served() - before + prefix);
        assert!(!plan.dir().exists());
    }
    repo.breaks_after = None;
    let dir = repo.fetch(&plan).await.unwrap();
    let own: u64 = plan.outputs.iter().map(|output| output.prefix.len() as u64).sum();
    assert_eq!(repo.served() - before, plan.total() - own, "each byte once");
    holds(&dir.join("model.safetensors"), &HEAD);
}

/// A killed program leaves a file longer than its journal.
#[tokio::test]
async fn a_kill_costs_less_than_a_stretch() {
    let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let before = repo.served();
    repo.breaks_after = Some(before + 350_000);
    repo.hangs = true;
    tokio::select! {
        _ = repo.fetch(&plan) => panic!("it hangs"),
        () = async { while repo.served() < before + 349_000 { tokio::time::sleep(Duration::from_millis(5)).await; } } => {}
    }
    let kept = plan.present();
    assert!((262_000..350_000).contains(&kept), "{kept}");
    repo.breaks_after = None;
    let dir = repo.fetch(&plan).await.unwrap();
    let twice = repo.served() - before - (plan.total() - plan.outputs[1].prefix.len() as u64);
    assert!((1..262_144).contains(&twice), "{twice}");
    holds(&dir.join("model.safetensors"), &HEAD);
}

#[tokio::test]
async fn what_the_disk_lost_is_fetched_again() {
    for damage in ["bytes", "end", "journal", "nonsense"] {
        let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
        let plan = repo.plan(root.path()).await.unwrap();
        repo.breaks_after = Some(repo.served() + 380_000);
        repo.fetch(&plan).await.unwrap_err();
        let work = root.path().join("tiny-org--tiny-model").join(format!(".{COMMIT}.part"));
        let (data, journal) = (work.join("files/model.safetensors"), work.join("1.journal"));
        let mut bytes = std::fs::read(&data).unwrap();
        match damage {
            "bytes" => {
                bytes[300_000..310_000].fill(0);
                std::fs::write(&data, bytes).unwrap();
            }
            "end" => std::fs::write(&data, &bytes[..200_000]).unwrap(),
            "journal" => std::fs::remove_file(&journal).unwrap(),
            _ => std::fs::write(&journal, b"9 \xff\xff\n18446744073709551615 ff\n-1 x\n\n").unwrap(),
        }
        repo.breaks_after = None;
        let dir = repo.fetch(&plan).await.unwrap();
        holds(&dir.join("model.safetensors"), &HEAD);
    }
}

#[tokio::test]
async fn halves_of_another_content_are_thrown_away() {
    let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    repo.breaks_after = Some(repo.served() + 380_000);
    repo.fetch(&plan).await.unwrap_err();
    assert!(plan.present() > 300_000);
    // The same commit with another content is not to be, but must not be mixed.
    let shard = repo.files.get_mut("m-2.safetensors").unwrap();
    let last = shard.len() - 1;
    shard[last] ^= 1;
    repo.breaks_after = None;
    let other = repo.plan(root.path()).await.unwrap();
    assert_eq!(other.present(), 0);
    let before = repo.served();
    repo.fetch(&other).await.unwrap();
    assert!(repo.served() - before > 390_000, "from the start");
}

#[tokio::test]
async fn a_damaged_head_in_place_is_made_anew() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let dir = repo.fetch(&plan).await.unwrap();
    for name in ["model.safetensors", "slipstream-head.json", "config.json"] {
        std::fs::remove_file(dir.join(name)).unwrap();
        assert!(plan.present() < plan.total(), "{name}");
        repo.fetch(&plan).await.unwrap();
        holds(&dir.join("model.safetensors"), &HEAD);
    }
    let path = dir.join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(plan.present(), 0);
    repo.fetch(&plan).await.unwrap();
    holds(&path, &HEAD);
}

#[tokio::test]
async fn two_at_once_fetch_it_once() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let before = repo.served();
    let (one, two) = tokio::join!(repo.fetch(&plan), repo.fetch(&plan));
    assert_eq!(one.unwrap(), two.unwrap());
    assert!(repo.served() - before < plan.total());
}

#[tokio::test]
async fn a_cancelled_one_says_what_it_keeps() {
    let (repo, root) = (sharded(), tempfile::tempdir().unwrap());
    let plan = repo.plan(root.path()).await.unwrap();
    let cancel = CancelToken::new();
    let stop = |there| {
        if there > 200_000 {
            cancel.cancel();
        }
    };
    // The first of the two places is fetched to its end; the second is not begun.
    let failure = fetch::fetch(&repo, &plan, &stop, &cancel).await.unwrap_err();
    let kept = 64 * 1024 * 4 + 12 + plan.outputs[0].len() + plan.outputs[1].prefix.len() as u64;
    assert_eq!(failure, HubError::Cancelled { kept });
    assert_eq!(plan.present(), kept);
}

#[tokio::test]
async fn stretches_of_another_length_are_refused() {
    for off_by in [-1, 1] {
        let (mut repo, root) = (sharded(), tempfile::tempdir().unwrap());
        let plan = repo.plan(root.path()).await.unwrap();
        let weights = HeadPlan {
            outputs: plan.outputs[1..].to_vec(),
            ..plan
        };
        repo.off_by = off_by;
        assert_eq!(
            repo.fetch(&weights).await.unwrap_err().kind(),
            "length_mismatch",
            "{off_by}"
        );
        assert_eq!(
            repo.plan(root.path()).await.unwrap_err().kind(),
            "length_mismatch",
            "{off_by}"
        );
        assert!(!weights.dir().exists());
        // What came of it must not stand in a wrong place afterwards.
        repo.off_by = 0;
        let dir = repo.fetch(&weights).await.unwrap();
        holds(&dir.join("model.safetensors"), &HEAD);
    }
}

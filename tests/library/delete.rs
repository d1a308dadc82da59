//! Deleting frees what nothing else uses, and nothing more.

use super::*;

#[tokio::test]
async fn deleting_frees_what_nothing_else_uses_and_nothing_more() {
    let disk = Disk::new().await;
    let first = disk.cache("demo/Tiny-4bit", FIRST, &builtin("target"));
    let second = disk.cache("demo/Tiny-4bit", SECOND, &builtin("target"));
    // The second commit changed one file.
    fs::remove_file(second.join("README.md")).unwrap();
    fs::write(disk.repo("demo/Tiny-4bit").join("blobs/new-readme"), [b'x'; 777]).unwrap();
    symlink("../../blobs/new-readme", second.join("README.md")).unwrap();
    let before = bytes_in(&disk.repo("demo/Tiny-4bit"));

    let library = &disk.state.library;
    let weighed = library.weigh(second.to_str().unwrap()).await.unwrap();
    assert!(weighed.shared > 20e6 && !weighed.foreign, "{weighed:?}");
    let freed = library.delete(second.to_str().unwrap(), false).await.unwrap();
    assert_eq!(freed as f64, weighed.frees);
    assert_eq!(freed, 777 + 40, "its own file and the ref that named it");
    assert_eq!(before - bytes_in(&disk.repo("demo/Tiny-4bit")), freed);
    assert_eq!(
        disk.find(&first).await.health,
        ModelHealth::Whole,
        "the other commit still loads"
    );
    assert!(!second.exists());

    let all = bytes_in(&disk.repo("demo/Tiny-4bit"));
    assert_eq!(library.delete(first.to_str().unwrap(), false).await.unwrap(), all);
    assert!(!disk.repo("demo/Tiny-4bit").exists());
}

/// Two variants in one snapshot, which share files.
#[tokio::test]
async fn deleting_a_variant_leaves_the_one_beside_it() {
    let disk = Disk::new().await;
    let snapshot = disk.cache("demo/Two", FIRST, &builtin("target"));
    let blobs = disk.repo("demo/Two").join("blobs");
    let variants = ["4bit", "8bit"].map(|name| snapshot.join(name));
    for variant in &variants {
        fs::create_dir(variant).unwrap();
        for file in fs::read_dir(&snapshot).unwrap().map(Result::unwrap) {
            if file.path().is_symlink() {
                let blob = fs::read_link(file.path()).unwrap();
                symlink(Path::new("..").join(blob), variant.join(file.file_name())).unwrap();
            }
        }
    }
    for file in fs::read_dir(&snapshot).unwrap().map(Result::unwrap) {
        // What lies above the variants is nobody's own, and goes with the last one.
        if file.path().is_symlink() && file.file_name() != "README.md" {
            fs::remove_file(file.path()).unwrap();
        }
    }
    assert!(snapshot.join("README.md").exists());
    let own = blobs.join("own-readme");
    fs::write(&own, [b'x'; 500]).unwrap();
    fs::remove_file(variants[1].join("README.md")).unwrap();
    symlink("../../../blobs/own-readme", variants[1].join("README.md")).unwrap();
    assert_eq!(disk.find(&variants[1]).await.model.name, "demo/Two/8bit");

    // The one that the next start would load.
    let (library, store) = (&disk.state.library, &disk.state.store);
    let path = variants[1].to_str().unwrap();
    store.choose_model(path, None).await.unwrap();
    let freed = library.delete(path, false).await.unwrap();
    assert_eq!(freed, 500, "what the other variant uses stays");
    assert!(!variants[1].exists() && !own.exists());
    assert_eq!(disk.find(&variants[0]).await.health, ModelHealth::Whole);
    assert_eq!(store.settings().await.unwrap().model, "builtin");

    // A part that was begun for this commit goes with its last variant.
    fs::write(blobs.join("abc.slipstream-part"), [0; 100]).unwrap();
    let note = format!(r#"{{"commit":"{FIRST}","etag":"abc"}}"#);
    fs::write(blobs.join("abc.slipstream-part.json"), note).unwrap();
    library.delete(variants[0].to_str().unwrap(), false).await.unwrap();
    assert!(!disk.repo("demo/Two").exists());
}

#[tokio::test]
async fn deleting_never_reaches_outside() {
    let disk = Disk::new().await;
    let precious = disk.dir.path().join("precious.safetensors");
    fs::write(&precious, [1; 100]).unwrap();
    let snapshot = disk.cache("demo/Tiny-4bit", FIRST, &builtin("target"));
    disk.cache("demo/Tiny-4bit", SECOND, &builtin("drafter"));
    symlink(&precious, snapshot.join("extra.safetensors")).unwrap();
    disk.state
        .library
        .delete(snapshot.to_str().unwrap(), false)
        .await
        .unwrap();
    assert!(precious.exists() && !snapshot.exists());

    // Another program's folder only when agreed to, and then only a checkpoint's own files.
    let foreign = disk.dir.path().join("lmstudio/models/someone/Tiny");
    copy(&builtin("target"), &foreign);
    fs::write(foreign.join("diary.txt"), "dear diary").unwrap();
    let library = &disk.state.library;
    let error = library.delete(foreign.to_str().unwrap(), false).await.unwrap_err();
    assert_eq!(error.kind, "foreign_folder");
    assert!(foreign.join("model.safetensors").exists());
    assert!(library.delete(foreign.to_str().unwrap(), true).await.unwrap() > 20_000_000);
    assert!(!foreign.join("model.safetensors").exists() && foreign.join("diary.txt").exists());

    // The one that comes with the app stays, as does one whose blobs lie elsewhere.
    let linked = disk.cache("demo/Linked", FIRST, &builtin("drafter"));
    let (blobs, elsewhere) = (
        disk.repo("demo/Linked").join("blobs"),
        disk.dir.path().join("elsewhere"),
    );
    fs::rename(&blobs, &elsewhere).unwrap();
    symlink(&elsewhere, &blobs).unwrap();
    assert_eq!(
        library.delete(linked.to_str().unwrap(), false).await.unwrap_err().kind,
        "outside_cache"
    );
    assert!(elsewhere.read_dir().unwrap().next().is_some());
}

#[tokio::test]
async fn deleting_in_a_folder_of_the_persons_stops_at_links_and_at_the_hubs_own_home() {
    let disk = Disk::new().await;
    let library = &disk.state.library;
    let shelf = disk.dir.path().join("lmstudio/models/someone");
    let put = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    };

    // Fetched into a folder: the notes of the tool that did it go too.
    let fetched = shelf.join("Fetched");
    copy(&builtin("drafter"), &fetched);
    put(&fetched.join(".cache/huggingface/.gitignore"));
    put(&fetched.join(".cache/huggingface/download/config.json.metadata"));
    library.delete(fetched.to_str().unwrap(), true).await.unwrap();
    assert!(!fetched.exists());

    // Fetched into a folder that is somebody's home: there the same name holds a cache and a token.
    let home = shelf.join("Home");
    copy(&builtin("drafter"), &home);
    let kept = [
        "token",
        "hub/models--a--b/blobs/1",
        "hub/models--a--b/refs/main",
        "download/config.json.metadata",
    ];
    let kept = kept.map(|name| home.join(".cache/huggingface").join(name));
    kept.iter().for_each(|path| put(path));
    library.delete(home.to_str().unwrap(), true).await.unwrap();
    assert!(!home.join("model.safetensors").exists());
    assert!(kept.iter().all(|path| path.exists()));

    // A link leads to what is not ours, as a folder and as the place of a head.
    let real = disk.dir.path().join("real");
    copy(&builtin("drafter"), &real);
    let link = shelf.join("Link");
    symlink(&real, &link).unwrap();
    let error = library.delete(link.to_str().unwrap(), true).await.unwrap_err();
    assert_eq!(error.kind, "outside_cache");
    let target = shelf.join("Target");
    copy(&builtin("target"), &target);
    symlink(&real, target.join("mtp")).unwrap();
    library.delete(target.to_str().unwrap(), true).await.unwrap();
    assert!(real.join("model.safetensors").exists() && !target.join("model.safetensors").exists());
}

use super::*;

fn files(paths: &[&str]) -> Vec<RemoteFile> {
    paths
        .iter()
        .map(|path| RemoteFile {
            path: (*path).to_owned(),
            size: Some(1),
            sha256: None,
            git_oid: None,
        })
        .collect()
}

fn patterns(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn chosen(paths: &[&str], include: &[&str], exclude: &[&str]) -> Vec<String> {
    let files = files(paths);
    let chosen = select(&files, &patterns(include), &patterns(exclude)).unwrap();
    chosen.into_iter().map(|file| file.path.clone()).collect()
}

fn failure(paths: &[&str], include: &[&str]) -> HubError {
    select(&files(paths), &patterns(include), &[]).unwrap_err()
}

/// Answers of Python's `fnmatch.fnmatchcase`.
#[test]
fn patterns_mean_what_they_mean_to_python() {
    for (pattern, yes, no) in [
        ("*", &["", "a", "a/b.json", "a\nb"][..], &[][..]),
        ("*.json", &[".json", "a/b.json"], &["a.jsonl", "A.JSON"]),
        ("a*b*c", &["abc", "axbxbxc", "abbc"], &["ab", "abcd"]),
        ("?.txt", &["a.txt", "/.txt", "ü.txt"], &[".txt", "ab.txt"]),
        ("[ab].md", &["a.md", "b.md"], &["c.md", "ab.md", "[ab].md"]),
        ("[!ab].md", &["c.md", "!.md"], &["a.md"]),
        ("[^a]", &["^", "a"], &["b"]),
        ("model-[0-9][0-9].x", &["model-07.x"], &["model-7.x", "model-0a.x"]),
        ("[]]", &["]"], &["[", ""]),
        ("[!]]", &["["], &["]"]),
        ("[]-a]", &["]", "^", "a"], &["-", "b"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[a-c-e]", &["b", "-", "e"], &["d"]),
        ("[z-a]", &[], &["z", "a", "m", "-"]),
        ("[!z-a]", &["z", "-"], &["", "zz"]),
        ("[z-a!b]", &["a", "z"], &["b"]),
        ("[z-a!-c]", &["a", "!"], &["-", "c"]),
        ("[!", &["[!"], &["[", "!"]),
        ("[a", &["[a"], &["a"]),
        ("{a,b}", &["{a,b}"], &["a", "b"]),
        ("a\\*", &["a\\b"], &["a*"]),
        ("**/x", &["a/x", "/x", "a/b/x"], &["x"]),
    ] {
        for path in yes {
            assert!(fnmatch::matches(pattern, path), "`{pattern}` matches `{path}`");
        }
        for path in no {
            assert!(!fnmatch::matches(pattern, path), "`{pattern}` does not match `{path}`");
        }
    }
}

#[test]
fn many_stars_take_no_time() {
    let path = "a".repeat(1000);
    assert!(!fnmatch::matches(&format!("{}b", "*a".repeat(300)), &path));
}

#[test]
fn a_slash_at_the_end_stands_for_all_below() {
    let paths = ["mtp/a.json", "mtp/deep/b.json", "mtp.json", "x/mtp/c.json"];
    assert_eq!(chosen(&paths, &["mtp/"], &[]), ["mtp/a.json", "mtp/deep/b.json"]);
    assert_eq!(chosen(&paths, &["*"], &["mtp/"]), ["mtp.json", "x/mtp/c.json"]);
}

#[test]
fn only_excluding_keeps_all_the_rest() {
    let paths = ["config.json", "old/config.json", "a.safetensors", "run.py"];
    assert_eq!(
        chosen(&paths, &[], &["*.safetensors"]),
        ["config.json", "old/config.json"]
    );
}

#[test]
fn without_patterns_the_loaders_needs_are_chosen() {
    let paths = [
        "config.json",
        "model-00001-of-00002.safetensors",
        "mtp.safetensors",
        "consolidated.safetensors",
        "special_tokens_map.json",
        "vocab.json",
        "mtp/model.safetensors",
        "README.md",
        "modeling.py",
    ];
    assert_eq!(
        chosen(&paths, &[], &[]),
        [
            "config.json",
            "model-00001-of-00002.safetensors",
            "mtp.safetensors",
            "special_tokens_map.json"
        ]
    );
}

#[test]
fn only_plain_names_of_known_kinds_are_allowed() {
    let long_part = format!("{}.json", "a".repeat(250));
    let long_path = format!("{}abcdefghi.json", "abcdefghi/".repeat(101));
    for path in [
        "config.json",
        "a b/c d.json",
        "LICENSE",
        "sub/NOTICE",
        "LICENSE.txt",
        "tokenizer.model",
        "o200k.tiktoken",
        "x.y/z.safetensors",
        "~a#%+,;=@[](){}!$&'`^.md",
        &long_part,
        &long_path,
    ] {
        assert!(is_allowed(path), "`{path}`");
    }
    let too_long_part = format!("a{long_part}");
    let too_long_path = format!("a{long_path}");
    assert_eq!((long_part.len(), long_path.len()), (255, 1024));
    for path in [
        "",
        "/etc/x.json",
        "../x.json",
        "a/../x.json",
        "./x.json",
        "a//x.json",
        "a/",
        "a.json/",
        ".x.json",
        ".git/x.json",
        "a/.json",
        "...json",
        " a.json",
        "a.json ",
        "a /b.json",
        "a/ b.json",
        "a\tb.json",
        "a\n.json",
        "a\0.json",
        "a\u{7f}.json",
        "ä.json",
        "a\u{308}.json",
        "a\u{202e}.json",
        "a\u{ff0f}b.json",
        "a\\b.json",
        "C:a.json",
        "a*.json",
        "a?.json",
        "a\".json",
        "a<.json",
        "a>.json",
        "a|.json",
        "x.py",
        "x.sh",
        "x.pkl",
        "x.bin",
        "x.pt",
        "x.gguf",
        "x.JSON",
        "x.json.exe",
        "license",
        "LICENSE.py",
        "json",
        &too_long_part,
        &too_long_path,
    ] {
        assert!(!is_allowed(path), "`{path}`");
    }
}

#[test]
fn what_is_not_allowed_is_never_chosen() {
    let paths = ["config.json", "../config.json", "x.py", "/config.json"];
    assert_eq!(chosen(&paths, &["*"], &[]), ["config.json"]);
    assert!(matches!(failure(&paths, &["../*", "x.py"]), HubError::NoMatch { .. }));
}

#[test]
fn the_same_name_twice_is_one_file() {
    assert_eq!(chosen(&["a.json", "a.json"], &["*"], &[]), ["a.json"]);
}

#[test]
fn names_that_are_one_on_a_mac_are_refused() {
    let files = |error| match error {
        HubError::CaseCollision { files } => files,
        other => panic!("{other}"),
    };
    let paths = ["A/x.json", "a/X.json", "b.json", "c.txt"];
    assert_eq!(files(failure(&paths, &["*"])), ["A/x.json", "a/X.json"]);
    assert_eq!(
        files(failure(&["A.json", "a.json/b/c.json"], &["*"])),
        ["A.json", "a.json/b/c.json"]
    );
    assert_eq!(
        chosen(&["Config.json", "config.json"], &["config.json"], &[]),
        ["config.json"]
    );
    assert_eq!(chosen(&["A/x.json", "a/y.json"], &["*"], &[]).len(), 2);
}

#[test]
fn a_pattern_without_a_match_lists_what_is_there() {
    let shards: Vec<String> = (1..=90).map(|n| format!("model-{n:05}-of-00090.safetensors")).collect();
    let mut paths: Vec<&str> = shards.iter().map(String::as_str).collect();
    paths.extend(["z/deep.json", "tokenizer.json", "a\u{202e}.json", "x.py"]);
    let error = failure(&paths, &["mtp-*", ""]);
    assert_eq!(error.kind(), "no_match");
    let HubError::NoMatch { patterns, files } = &error else {
        panic!("{error}");
    };
    assert_eq!(patterns, &["mtp-*", ""]);
    assert_eq!(files.len(), 94);
    assert_eq!(files[0], "tokenizer.json");
    assert!(error.to_string().contains("`mtp-*`") && error.to_string().contains("`tokenizer.json`"));
    assert!(!error.to_string().contains('\u{202e}') && files.iter().any(|f| f == r"a\u{202e}.json"));
    let none = failure(&["README.md", "model.gguf"], &[]);
    assert!(none.to_string().contains("`config.json`") && none.to_string().contains("`model.gguf`"));
}

#[test]
fn a_pattern_that_chooses_nothing_beside_others_is_told() {
    let files = files(&["config.json", "run.py"]);
    let include = patterns(&["config.json", "mtp.safetensor", "*.py"]);
    assert_eq!(unmatched(&files, &include), ["mtp.safetensor", "*.py"]);
}

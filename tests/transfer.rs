//! Chats written to files and read from them, this app's own and others'.

use app::ipc::{ExportFormat, Role};
use app::library::Assets;
use app::state::AppState;
use app::transfer::{Conversation, Entry, decode, export, file_name, import};
use serde_json::json;
use tempfile::TempDir;

fn entry(parent: Option<usize>, role: Role, content: &str) -> Entry {
    Entry::new(parent, role, content.to_owned(), 1_700_000_000_123.0)
}

fn conversation() -> Conversation {
    let mut reply = entry(
        Some(0),
        Role::Assistant,
        "A <b>stack</b> & \"more\"\n\n```rust\nfn main() {}\n```",
    );
    reply.reasoning = Some("Hm.\nWell.".to_owned());
    Conversation {
        title: "Stacks / 日本".to_owned(),
        created_at: 1_700_000_000_000.0,
        updated_at: 1_700_000_000_456.0,
        pinned: true,
        tags: vec!["work".to_owned()],
        config: app::ipc::ChatConfig {
            system_prompt: "Be brief.".to_owned(),
            options: Some(app::ipc::TurnOptions {
                seed: Some(9_007_199_254_740_991.0),
                ..app::ipc::TurnOptions::default()
            }),
        },
        messages: vec![
            entry(None, Role::User, "What is a stack?"),
            reply,
            entry(Some(0), Role::Assistant, "Other 👩‍👩‍👧 words"),
            entry(Some(1), Role::User, "More"),
        ],
        shown: Some(2),
    }
}

#[test]
fn json_brings_back_every_branch() {
    let chats = [
        conversation(),
        Conversation {
            shown: Some(3),
            ..conversation()
        },
    ];
    let found = import(&export(&chats, ExportFormat::Json)).unwrap();
    assert_eq!(found.chats, chats);
    assert!(found.left_out.is_empty());
}

#[test]
fn text_and_page_show_the_branch_and_obey_nothing_in_it() {
    let chat = Conversation {
        shown: Some(3),
        ..conversation()
    };
    let text = export(std::slice::from_ref(&chat), ExportFormat::Markdown);
    let order: Vec<_> = ["# Stacks", "Be brief.", "## You", "> Hm.\n> Well.", "```rust", "More"]
        .map(|part| text.find(part).unwrap_or_else(|| panic!("no {part} in {text}")))
        .to_vec();
    assert!(order.is_sorted() && !text.contains("Other"), "{text}");
    let page = export(&[chat], ExportFormat::Html);
    assert!(
        page.contains("A &lt;b&gt;stack&lt;/b&gt; &amp; &quot;more&quot;"),
        "{page}"
    );
    assert!(!page.contains("<b>") && !page.contains("Other"));
}

#[test]
fn formulas_are_exported_as_they_were_written() {
    let formula = "Area $\\pi r^2$\n\n$$\na &= b \\\\\n$$";
    let chat = Conversation {
        messages: vec![entry(None, Role::User, formula)],
        shown: Some(0),
        ..conversation()
    };
    let text = export(std::slice::from_ref(&chat), ExportFormat::Markdown);
    assert!(text.contains(formula), "{text}");
    let page = export(&[chat], ExportFormat::Html);
    assert!(page.contains(&formula.replace('&', "&amp;")), "{page}");
}

#[test]
fn a_title_becomes_a_name_that_any_system_takes() {
    assert_eq!(file_name("a/b: c?\\*..", ExportFormat::Markdown), "a b c.md");
    assert_eq!(file_name("../..", ExportFormat::Json), "chat.json");
    assert_eq!(file_name("日本", ExportFormat::Html), "日本.html");
    assert!(file_name(&"x".repeat(500), ExportFormat::Json).len() < 100);
}

#[test]
fn what_is_wrong_with_a_chat_is_told_and_the_others_come() {
    let circle = json!({ "title": "Odd", "messages": [
        { "parent": 1, "role": "user", "content": "a", "status": "complete" },
        { "parent": 0, "role": "user", "content": "b", "status": "complete" },
    ]});
    let future = json!({ "title": "", "messages": [
        { "role": "user", "content": "Hello there", "status": "streaming", "run": { "newer": true }, "later": 1 },
    ]});
    let file = json!({ "format": "slipstream-chats", "version": 9, "chats": [circle, future, { "title": "Empty" }] });
    let found = import(&file.to_string()).unwrap();
    assert_eq!(found.chats.len(), 1);
    assert_eq!(
        (found.chats[0].title.as_str(), found.chats[0].shown),
        ("Hello there", Some(0))
    );
    assert_eq!(found.left_out.len(), 2);
    assert!(
        found.left_out[0].contains("Odd") && found.left_out[1].contains("Empty"),
        "{:?}",
        found.left_out
    );
    for bad in [
        "",
        "[]",
        "{}",
        "not json",
        "[{\"title\": 1}]",
        "{\"format\": \"slipstream-chats\"}",
    ] {
        assert!(import(bad).is_err(), "{bad}");
    }
}

/// As ChatGPT writes them: a root without a message, hidden instructions, thinking and tools as nodes between.
#[test]
fn chatgpt_conversations_come_with_branches_thinking_and_without_tools() {
    let node = |parent: &str, children: &[&str], role: &str, content: serde_json::Value| {
        json!({ "parent": parent, "children": children,
            "message": { "author": { "role": role }, "content": content, "create_time": 1700000001.5, "recipient": "all" } })
    };
    let text = |text: &str| json!({ "content_type": "text", "parts": [text] });
    let mut mapping = json!({
        "root": { "parent": null, "children": ["sys"], "message": null },
        "sys": node("root", &["q"], "system", text("You are")),
        "q": node("sys", &["t", "a2"], "user",
            json!({ "content_type": "multimodal_text", "parts": [{ "asset_pointer": "x" }, "Look"] })),
        "t": node("q", &["call"], "assistant",
            json!({ "content_type": "thoughts", "thoughts": [{ "summary": "s", "content": "Let me see" }] })),
        "call": node("t", &["tool"], "assistant", json!({ "content_type": "code", "text": "search()" })),
        "tool": node("call", &["a1"], "tool", text("results")),
        "a1": node("tool", &["a1b"], "assistant", text("Part one")),
        "a1b": node("a1", &["q2"], "assistant", text("Part two")),
        "q2": node("a1b", &[], "user", text("Thanks")),
        "a2": node("q", &[], "assistant", text("Another answer")),
    });
    mapping["call"]["message"]["recipient"] = json!("browser");
    let file = json!([
        { "title": "Pictures", "create_time": 1700000000.25, "update_time": 1700000002.0, "mapping": mapping, "current_node": "a1b" },
        { "title": "Nothing", "mapping": {} },
    ]);
    let found = import(&file.to_string()).unwrap();
    assert_eq!(found.left_out.len(), 1);
    let chat = &found.chats[0];
    assert_eq!(
        (chat.title.as_str(), chat.created_at, chat.updated_at),
        ("Pictures", 1_700_000_000_250.0, 1_700_000_002_000.0)
    );
    let shown: Vec<_> = chat.branch().iter().map(|m| (m.role, m.content.as_str())).collect();
    assert_eq!(
        shown,
        [
            (Role::User, "Look"),
            (Role::Assistant, "Part one\n\nPart two"),
            (Role::User, "Thanks")
        ]
    );
    assert_eq!(chat.branch()[1].reasoning.as_deref(), Some("Let me see"));
    let other = chat.messages.iter().find(|m| m.content == "Another answer").unwrap();
    assert_eq!(other.parent, Some(0), "another version of the answer");
}

#[test]
fn open_webui_chats_come_with_branches_and_their_thinking_unfolded() {
    let file = json!([{ "id": "1", "title": "Tea", "created_at": 1700000000, "updated_at": 1700000009, "pinned": true,
    "meta": { "tags": ["drinks"] },
    "chat": { "title": "Tea", "params": { "system": "Be kind." }, "history": { "currentId": "c", "messages": {
        "a": { "id": "a", "parentId": null, "childrenIds": ["b", "c"], "role": "user", "content": "Tea?", "timestamp": 1700000001 },
        "b": { "id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "content": "No." },
        "c": { "id": "c", "parentId": "a", "childrenIds": [], "role": "assistant",
            "content": "<details type=\"reasoning\" done=\"true\" duration=\"2\">\n<summary>Thought for 2 seconds</summary>\n> Hm.\n> Yes.\n</details>\nYes." },
    }}}}]);
    let found = import(&file.to_string()).unwrap();
    let chat = &found.chats[0];
    assert_eq!(
        (chat.pinned, &chat.tags[..], chat.config.system_prompt.as_str()),
        (true, &["drinks".to_owned()][..], "Be kind.")
    );
    assert_eq!(chat.created_at, 1_700_000_000_000.0);
    let shown = chat.branch();
    assert_eq!((shown[0].content.as_str(), shown[1].content.as_str()), ("Tea?", "Yes."));
    assert_eq!(shown[1].reasoning.as_deref(), Some("Hm.\nYes."));
    assert_eq!(chat.messages.len(), 3);
}

#[test]
fn what_is_no_export_is_told_apart() {
    let text = r#"[{"title": "é", "mapping": {}}]"#;
    let wide = |little: bool| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units
            .flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() })
            .collect()
    };
    let marked = [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat();
    for bytes in [text.as_bytes().to_vec(), marked, wide(true), wide(false)] {
        assert_eq!(decode(&bytes).unwrap(), text);
    }
    for (bytes, says) in [
        (&b"PK\x03\x04rest"[..], "unpack it"),
        (b"[\"\xff\"]", "byte 2"),
        (b"\xff\xfea", "damaged"),
        (b" <!doctype html>", "a page"),
    ] {
        let error = decode(bytes).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    assert!(import(" ").unwrap_err().contains("empty"));
    for end in 1..text.len() {
        if text.is_char_boundary(end) {
            assert!(import(&text[..end]).unwrap_err().contains("breaks off"), "{end}");
        }
    }
    assert!(import(&"[".repeat(100_000)).is_err(), "however deep it is");
}

/// What else is in them: pictures, files, documents of the canvas, citations, recaps, what was dropped and what is hidden.
#[test]
fn chatgpt_conversations_come_with_what_a_person_saw() {
    let mapping = json!({
        "root": { "children": ["ctx"], "message": null },
        "ctx": { "parent": "root", "children": ["q"], "message": { "author": { "role": "user" },
            "content": { "content_type": "user_editable_context", "user_profile": "p", "user_instructions": "i" },
            "metadata": { "is_visually_hidden_from_conversation": true } } },
        "q": { "parent": "ctx", "children": ["th"], "message": { "author": { "role": "user" }, "create_time": null,
            "content": { "content_type": "multimodal_text", "parts": [{ "content_type": "image_asset_pointer" }, ""] },
            "metadata": { "attachments": [{ "name": "notes.pdf" }, {}] } } },
        "th": { "parent": "q", "children": ["canvas"], "message": { "author": { "role": "assistant" },
            "content": { "content_type": "thoughts", "thoughts": [{ "content": "First" }, { "content": "Then" }] } } },
        // Some exports do not list the children.
        "canvas": { "parent": "th", "message": { "author": { "role": "assistant" }, "recipient": "canmore.create_textdoc",
            "content": { "content_type": "code", "language": "json",
                "text": "{\"name\": \"poem\", \"type\": \"code/python\", \"content\": \"print('```')\"}" } } },
        "run": { "parent": "canvas", "children": ["recap"], "message": { "author": { "role": "tool", "name": "python" },
            "content": { "content_type": "execution_output", "text": "1" } } },
        "recap": { "parent": "run", "children": ["a"], "message": { "author": { "role": "assistant" },
            "content": { "content_type": "reasoning_recap", "content": "Thought for 9 seconds" } } },
        "a": { "parent": "recap", "children": [], "message": { "author": { "role": "assistant" }, "recipient": "all",
            "content": { "content_type": "text", "parts": ["Rain\u{e200}cite\u{e202}turn0search1\u{e201} today."] } } },
        "lost": { "parent": "gone", "children": ["lost"], "message": { "author": { "role": "user" }, "content": null } },
    });
    let file = json!([{ "title": "Seen", "create_time": 1_700_000_000, "mapping": mapping, "current_node": "a" }]);
    let found = import(&file.to_string()).unwrap();
    let shown: Vec<_> = found.chats[0]
        .branch()
        .iter()
        .map(|m| (m.role, m.content.as_str()))
        .collect();
    assert_eq!(
        shown,
        [
            (Role::User, "[file: notes.pdf]\n\n[image]\n\n"),
            (Role::Assistant, "````python\nprint('```')\n````\n\nRain today.")
        ]
    );
    assert_eq!(found.chats[0].branch()[1].reasoning.as_deref(), Some("First\n\nThen"));
}

#[test]
fn older_and_newer_open_webui_chats_come_too() {
    let reply = "<details type=\"reasoning\" done=\"true\" duration=\"2\">\n<summary>Thought for 2 seconds</summary>\n&gt; Is 1 &lt; 2 &amp;&amp; so?\n&gt; &gt; quoted\n</details>\n\
        <details type=\"tool_calls\" done=\"true\" id=\"c\" arguments=\"{&quot;q&quot;: 1}\">\n<summary>Tool Executed</summary>\n</details>\n\
        <details type=\"reasoning\" done=\"true\">\n<summary>Thought</summary>\n> Again.\n</details>\nYes.\n\n<details><summary>More</summary>kept</details>";
    let messages = json!([
        { "role": "system", "content": "Be kind." },
        { "role": "user", "content": [{ "type": "text", "text": "Look" }, { "type": "image_url" }], "files": [{ "type": "image" }, { "type": "file", "name": "a.txt" }] },
        { "role": "assistant", "content": reply },
    ]);
    // In the export, without its frame, and with an empty tree beside the list.
    let bare = json!({ "title": "Old", "messages": messages });
    let framed = json!([{ "id": "1", "chat": bare }]);
    let empty_tree =
        json!([{ "title": "Old", "chat": { "messages": messages, "history": { "messages": {}, "currentId": null } } }]);
    for file in [bare, framed, empty_tree] {
        let found = import(&file.to_string()).unwrap();
        assert!(found.left_out.is_empty(), "{:?}", found.left_out);
        let chat = &found.chats[0];
        let shown: Vec<_> = chat.branch().iter().map(|m| (m.role, m.content.as_str())).collect();
        assert_eq!(
            shown,
            [
                (Role::User, "[image]\n\n[file: a.txt]\n\nLook"),
                (
                    Role::Assistant,
                    "Yes.\n\n<details><summary>More</summary>kept</details>"
                )
            ]
        );
        assert_eq!(
            chat.branch()[1].reasoning.as_deref(),
            Some("Is 1 < 2 && so?\n> quoted\n\nAgain.")
        );
        assert_eq!(
            (chat.title.as_str(), chat.config.system_prompt.as_str()),
            ("Old", "Be kind.")
        );
    }
}

#[tokio::test]
async fn a_file_on_disk_brings_chats_into_another_history() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let assets = || Assets::in_dir(&tests::root().join("assets"));
    let app = AppState::open_in(here.path(), assets()).await.unwrap();
    app.store.import_chat(&conversation()).await.unwrap();
    let file = here.path().join("chats.json");
    std::fs::write(&file, "what was there").unwrap();
    app.export_chats(None, ExportFormat::Json, &file).await.unwrap();

    let other = AppState::open_in(there.path(), assets()).await.unwrap();
    let files = std::slice::from_ref(&file);
    let imported = other.import_chats(files).await.unwrap();
    let back = other.store.export_chat(imported.chats[0].id).await.unwrap();
    assert_eq!(back, conversation());
    assert_eq!(
        std::fs::read_dir(here.path())
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "part"))
            .count(),
        0
    );

    // A second time it brings nothing, also when the chat went on and was renamed since.
    let id = imported.chats[0].id;
    other.store.rename_chat(id, "Mine").await.unwrap();
    other.store.begin_turn(Some(id), "", "And then?").await.unwrap();
    let again = other.import_chats(files).await.unwrap();
    assert_eq!((again.chats.len(), again.already), (0, 1));
    let elsewhere = there.path().join("later.json");
    let mut longer = conversation();
    longer
        .messages
        .push(entry(Some(3), Role::Assistant, "What was said later"));
    std::fs::write(&elsewhere, export(&[longer.clone(), longer], ExportFormat::Json)).unwrap();
    let later = other.import_chats(std::slice::from_ref(&elsewhere)).await.unwrap();
    assert_eq!(
        (later.chats.len(), later.already),
        (1, 1),
        "one that knows more comes, once"
    );

    // Of several files all come, or nothing does.
    let before = other.store.list_chats().await.unwrap();
    let missing = there.path().join("none.json");
    let new = there.path().join("new.json");
    let newer = Conversation {
        created_at: 5.0,
        ..conversation()
    };
    std::fs::write(&new, export(&[newer], ExportFormat::Json)).unwrap();
    let error = other.import_chats(&[new.clone(), missing.clone()]).await.unwrap_err();
    assert!(error.kind == "file" && error.message.contains("none.json"), "{error:?}");
    std::fs::write(&missing, "{\"format\": \"slipstream-chats\", \"chats\": [").unwrap();
    let error = other.import_chats(&[new, missing]).await.unwrap_err();
    assert!(
        error.kind == "import" && error.message.contains("none.json") && error.message.contains("breaks off"),
        "{error:?}"
    );
    assert_eq!(other.store.list_chats().await.unwrap(), before);
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(other.import_chats(&[file]).await.unwrap_err().kind, "import");
    let folder = there.path().join("no/such/folder.md");
    assert_eq!(
        app.export_chats(None, ExportFormat::Markdown, &folder)
            .await
            .unwrap_err()
            .kind,
        "file"
    );
    app.close().await;
    other.close().await;
}

//! Words of messages: found, shown, and gone when they are removed.

use super::*;

#[tokio::test]
async fn messages_are_found_by_their_words_in_any_script_and_on_any_branch() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let begun = store
        .begin_turn(None, "Weather", "Where is the Größe of a \"stack\" told?")
        .await
        .unwrap();
    store
        .save_partial(begun.assistant.id, "unfinished words", "", &[])
        .await
        .unwrap();
    assert!(
        store.search("unfinished").await.unwrap().is_empty(),
        "not before it has ended"
    );
    finish(&store, &begun, "東京の天気は晴れです。 100% sure_thing").await;
    let again = store.begin_again(begun.assistant.id).await.unwrap();
    finish(
        &store,
        &again,
        &format!("{} needle {}", "before ".repeat(40), "after ".repeat(40)),
    )
    .await;

    let ids = |hits: Vec<app::ipc::SearchHit>| hits.iter().map(|hit| hit.message_id).collect::<Vec<_>>();
    for (query, found) in [
        ("stack", vec![begun.user.id]),
        ("STA größe", vec![begun.user.id]),
        ("stack needle", vec![]),
        ("天気", vec![begun.assistant.id]),
        ("天気は 晴れ", vec![begun.assistant.id]),
        ("0%", vec![begun.assistant.id]),
        ("e_", vec![begun.assistant.id]),
        ("\"stack\"", vec![begun.user.id]),
        ("AND OR NOT", vec![]),
        ("needle*", vec![]),
        ("need", vec![again.assistant.id]),
        ("  ", vec![]),
    ] {
        assert_eq!(ids(store.search(query).await.unwrap()), found, "{query}");
    }
    // A page that was pasted, and what no keyboard has.
    let page = (0..5000).map(|n| format!("w{n} a{} ", n % 90)).collect::<String>();
    assert!(store.search(&page).await.unwrap().is_empty());
    assert_eq!(
        store.search("needle needle\0 needle").await.unwrap().len(),
        store.search("needle").await.unwrap().len()
    );
    let hit = store.search("needle").await.unwrap().remove(0);
    let text: String = hit.pieces.iter().map(|piece| piece.text.as_str()).collect();
    assert!(
        text.starts_with('…') && text.ends_with('…') && text.chars().count() < 130,
        "{text}"
    );
    let marked: Vec<_> = hit
        .pieces
        .iter()
        .filter(|piece| piece.hit)
        .map(|piece| piece.text.as_str())
        .collect();
    assert_eq!(marked, ["needle"]);
    // A hit on a branch that is not shown leads there.
    let chat = store.show_message(begun.assistant.id).await.unwrap();
    assert_eq!(chat.messages[1].id, begun.assistant.id);

    store.delete_chat(begun.chat.id).await.unwrap();
    assert!(store.search("stack").await.unwrap().is_empty());
    store.purge().await.unwrap();
    check_index(dir.path()).await;
}

#[tokio::test]
async fn what_is_shown_of_a_message_cuts_no_character_and_marks_whole_ones() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let family = "👩‍👩‍👧‍👦";
    let accented = "e\u{301}";
    let long = format!("{} needle {}", "x".repeat(3_000_000), "y ".repeat(1_000_000));
    let texts = [
        format!("{0} İstanbul’da {0}", "ağaç ".repeat(30)),
        format!("{0}天気予報{0}", "日本語".repeat(50)),
        format!("{0}cafe{0}", family.repeat(60)),
        format!("{} r{accented}sum{accented} {}", "a ".repeat(60), "b ".repeat(80)),
        format!("{0} שלום עולם {0}", "עברית ".repeat(20)),
        "ΟΔΥΣΣΕΥΣ, ÄRGER\n\n   und\tmehr".to_owned(),
        long,
    ];
    for text in &texts {
        let begun = store.begin_turn(None, "t", text).await.unwrap();
        finish(&store, &begun, "-").await;
    }
    for (query, marked, starts) in [
        ("istanbul", "İstanbul", "…"),
        ("予報", "予報", "…"),
        ("cafe", "cafe", "…"),
        ("sume", &*format!("sum{accented}"), "…"),
        ("RÉSUMÉ", &*format!("r{accented}sum{accented}"), "…"),
        ("שלום", "שלום", "…"),
        ("οδυσσευς", "ΟΔΥΣΣΕΥΣ", ""),
        ("är", "ÄR", ""),
        ("needle", "needle", "…"),
    ] {
        let hits = store.search(query).await.unwrap();
        assert_eq!(hits.len(), 1, "{query}");
        let pieces = &hits[0].pieces;
        let found: Vec<_> = pieces
            .iter()
            .filter(|piece| piece.hit)
            .map(|piece| &*piece.text)
            .collect();
        assert_eq!(found, [marked], "{query}: {pieces:?}");
        let shown: String = pieces.iter().map(|piece| &*piece.text).collect();
        assert!(shown.starts_with(starts) && !shown.contains('\n'), "{shown}");
        let text = texts.iter().find(|text| text.contains(marked)).unwrap();
        let squeezed = shown.trim_matches('…').split_whitespace().collect::<Vec<_>>().join(" ");
        let whole: Vec<&str> = text.split_whitespace().collect();
        assert!(whole.join(" ").contains(&squeezed), "{shown}");
        // A family is one character, and neither end parts one.
        let outside = shown.replace(family, "");
        assert!(!outside.contains('👩') && !outside.contains('\u{200d}'), "{shown}");
        assert!(!shown.trim_start_matches('…').starts_with('\u{301}'), "{shown}");
    }
}

#[tokio::test]
async fn what_is_removed_for_good_is_in_no_file_any_more() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    let secret = "xylophonequartz";
    let begun = store
        .begin_turn(None, "t", &format!("{secret} ").repeat(300))
        .await
        .unwrap();
    finish(&store, &begun, secret).await;
    let (other, _) = two_turns(&store).await;
    assert!(
        matches!(store.purge_chat(begun.chat.id).await, Err(Error::NoChat(_))),
        "not before it is deleted"
    );

    assert_eq!(store.delete_all_chats().await.unwrap(), 2);
    assert!(store.list_chats().await.unwrap().is_empty());
    let listed: Vec<i32> = store.list_deleted().await.unwrap().iter().map(|chat| chat.id).collect();
    assert_eq!(listed, [other.chat.id, begun.chat.id]);
    store.restore_chat(other.chat.id).await.unwrap();
    store.purge_chat(begun.chat.id).await.unwrap();
    assert!(matches!(store.restore_chat(begun.chat.id).await, Err(Error::NoChat(_))));
    assert!(store.list_deleted().await.unwrap().is_empty());
    assert_eq!(store.open_chat(other.chat.id).await.unwrap().messages.len(), 4);
    check_index(dir.path()).await;
    store.close().await;
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        for word in [secret, "ylo", "artz"] {
            let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{word} in {}", path.display());
        }
    }
}

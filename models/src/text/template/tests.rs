use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{ChatTemplate, RenderInput};
use crate::{Error, Result};

fn render(template: &str) -> Result<String> {
    let messages = json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"z\": 1, \"a\": 2.0}"}}]},
        {"role": "user", "content": "b"}
    ]);
    let Value::Object(vars) = json!({"big": "a".repeat(100_000), "d": {"z": 1, "a": null}}) else {
        unreachable!()
    };
    ChatTemplate::from_source(template).render(RenderInput {
        messages: &messages,
        tools: None,
        add_generation_prompt: true,
        vars: &vars,
        now: Some("2026-02-03T04:05:06".parse().unwrap()),
    })
}

#[test]
fn constructs_of_published_templates() {
    for (template, text) in [
        (
            "{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role[0] }}{% endfor %}",
            "0u1a2u3s",
        ),
        ("{% for i in range(3, -1, -1) %}{{ i }}{% endfor %}", "3210"),
        (
            "{% set ns = namespace(n=0) %}{% macro up() %}{% set ns.n = ns.n + 1 %}{% endmacro %}{{ up() }}{{ up() }}{{ ns.n }}",
            "2",
        ),
        (
            "{% for i in range(9) %}{% for j in range(9) %}{% if j == 2 %}{% break %}{% endif %}{% if i % 2 %}{% continue %}{% endif %}{{ i }}{{ j }} {% endfor %}{% if i == 2 %}{% break %}{% endif %}{% endfor %}",
            "00 01 20 21 ",
        ),
        (
            "{{ messages[2].tool_calls[0].function.arguments | tojson }}",
            r#"{"z": 1, "a": 2.0}"#,
        ),
        (
            "{% for k, v in messages[2].tool_calls[0].function.arguments | items %}{{ k }}={{ v }};{% endfor %}",
            "z=1;a=2.0;",
        ),
        (
            "{{ tools is none }}{{ documents is none }}{{ enable_thinking is defined }}{{ add_generation_prompt }}",
            "TrueTrueFalseTrue",
        ),
        (
            "{{ none is iterable }}{{ 'a' is sequence }}{{ d is sequence }}{{ messages[1:] is sequence }}",
            "FalseTrueTrueTrue",
        ),
        (
            "{% generation %}{% set x = 1 %}a{% endgeneration %}{{ x is defined }}",
            "aFalse",
        ),
        (
            "{{ d }} {{ [1.0, 'it\\'s', none, true] }} {{ (1,) }}",
            "{'z': 1, 'a': None} [1.0, \"it's\", None, True] (1,)",
        ),
        (
            "{{ \"they're\".title() }} {{ 'a,b'.split(sep=',', maxsplit=1) }} {{ 'ab'.removeprefix('a') }}",
            "They'Re ['a', 'b'] b",
        ),
        ("{{ strftime_now('%d %b %Y') }}", "03 Feb 2026"),
        (
            "{{ '<&\\'' | tojson }} {{ '<&\"\\'' | e }}",
            "\"<&'\" &lt;&amp;&#34;&#39;",
        ),
        (
            "{{ d | tojson(sort_keys=true, separators=(',', ':')) }} {{ [1, []] | tojson(indent=1) }}",
            "{\"a\":null,\"z\":1} [\n 1,\n []\n]",
        ),
        (
            "{{ '<p>' + ('b' | safe) }}{{ '<p>' ~ ('b' | safe) }}{{ 1 + 2 }}{{ 0.5 + 1 }}{% set f = 1e-7 %}{{ f ~ '' }}{{ [1] + [2] }}{{ (1,) + (2,) }}",
            "&lt;p&gt;b<p>b31.51e-07[1, 2](1, 2)",
        ),
        (
            "{{ [1, {'a': 2}] == [1.0, {'a': 2}] }}{{ {'a': 1} != {'a': 1, 'b': 2} }}{{ (1,) == [1] }}{{ 1 == true }}",
            "TrueTrueFalseTrue",
        ),
        (
            "{{ 'x' | int }}{{ '3' | int + 1 }}{{ 'x' | float }}{{ 'a\\nb' | indent('> ') }}",
            "040.0a\n> b",
        ),
        ("a\r\n{% if true %}\r\nb\r\n{% endif %}\r\n", "a\nb\n"),
    ] {
        assert_eq!(render(template).unwrap(), text, "{template}");
    }
}

#[test]
fn failures_are_told_apart() {
    for (template, kind) in [
        ("{{ raise_exception('no ' ~ 1) }}", "template_raised"),
        (
            "{% macro m() %}{{ raise_exception('no ' ~ 1) }}{% endmacro %}{% for i in [1] %}{{ m() | trim }}{% endfor %}",
            "template_raised",
        ),
        ("{% if %}", "template_syntax"),
        ("{{ 1 | nosuch }}", "template_syntax"),
        ("{{ nosuch() }}", "template_runtime"),
        ("{{ a.b.c }}", "template_runtime"),
        ("{{ a | tojson }}", "template_runtime"),
    ] {
        let error = render(template).unwrap_err();
        assert_eq!(error.kind(), kind, "{template}: {error}");
        if kind == "template_raised" {
            assert!(error.to_string().ends_with("no 1"), "{error}");
        }
    }
}

#[test]
fn bad_templates_end_soon_and_in_little_memory() {
    let nest = |step: &str, count: u32, end: &str| {
        format!(
            "{{% set ns = namespace(s=['x']) %}}{{% for i in range({count}) %}}{{% set ns.s = {step} %}}{{% endfor %}}{{{{ {end} }}}}"
        )
    };
    for template in [
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ messages }}{% endfor %}{% endfor %}".to_owned(),
        "{% set x %}{% for a in range(99999) %}{% for b in range(99999) %}{{ big }}{% endfor %}{% endfor %}{% endset %}".to_owned(),
        "{% for i in range(10**9) %}{% endfor %}".to_owned(),
        "{{ 'a' * 10**9 }}".to_owned(),
        "{{ [1] * 10**9 }}".to_owned(),
        "{{ 'a'.ljust(10**10) }}".to_owned(),
        "{{ [1] | tojson(indent=10**9) }}".to_owned(),
        "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}".to_owned(),
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}".to_owned(),
        "{% for a in range(99999) %}{% for b in range(99999) %}{% set x = big | tojson %}{% endfor %}{% endfor %}".to_owned(),
        nest("ns.s ~ ns.s", 64, "ns.s"),
        nest("ns.s + ns.s", 64, "ns.s | length"),
        nest("[ns.s, ns.s]", 64, "(ns.s ~ '') | length"),
        nest("[ns.s, ns.s]", 64, "ns.s | join"),
        nest("[ns.s, ns.s]", 64, "ns.s == [ns.s, ns.s]") + "{% set nt = namespace(s=['x']) %}{% for i in range(64) %}{% set nt.s = [nt.s, nt.s] %}{% endfor %}{{ ns.s == nt.s }}",
        "{{ '{:>1000000000}'.format(1) }}".to_owned(),
        nest("(ns.s | join) + (ns.s | join)", 64, "ns.s"),
        nest("[ns.s, ns.s]", 64, "ns.s"),
        nest("[ns.s, ns.s]", 64, "ns.s | tojson"),
        nest("[ns.s]", 99_999, "ns.s"),
        nest("[ns.s]", 99_999, "ns.s | tojson"),
        format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000)),
        "{% if 1 %}".repeat(5_000) + &"{% endif %}".repeat(5_000),
    ] {
        let start = Instant::now();
        let shown: String = template.chars().take(120).collect();
        let error = render(&template).expect_err(&shown);
        let is_right = matches!(error, Error::TemplateLimit { .. } | Error::TemplateRuntime { .. } | Error::TemplateSyntax { .. });
        assert!(is_right && start.elapsed() < Duration::from_secs(20), "{shown}: {error} after {:?}", start.elapsed());
    }
}

#[test]
fn templates_are_chosen_as_transformers_does() {
    let choose = |files: &[(&str, &str)], has_tools: bool| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("additional_chat_templates")).unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let Some(template) = ChatTemplate::load(dir.path()).unwrap() else {
            return "none".to_owned();
        };
        let (empty, tools) = (json!([]), json!([{}]));
        let input = RenderInput {
            messages: &empty,
            tools: has_tools.then_some(&tools),
            add_generation_prompt: false,
            vars: &Map::new(),
            now: None,
        };
        template.render(input).unwrap_or_else(|error| error.kind().to_owned())
    };
    let config = ("tokenizer_config.json", r#"{"chat_template": "config"}"#);
    let named = (
        "tokenizer_config.json",
        r#"{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}"#,
    );
    let jinja = ("chat_template.jinja", "jinja");
    let additional = ("additional_chat_templates/tool_use.jinja", "additional");
    let old = ("chat_template.json", r#"{"chat_template": "old"}"#);
    for (files, plain, with_tools) in [
        (vec![], "none", "none"),
        (vec![config, jinja, old], "jinja", "jinja"),
        (vec![config, old], "config", "config"),
        (vec![old], "old", "old"),
        (vec![named], "d", "t"),
        (vec![jinja, additional], "jinja", "additional"),
        (vec![config, additional], "template_missing", "additional"),
    ] {
        assert_eq!(
            (choose(&files, false).as_str(), choose(&files, true).as_str()),
            (plain, with_tools),
            "{files:?}"
        );
    }
}

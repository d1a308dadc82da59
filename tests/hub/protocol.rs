//! The fake hub itself, spoken to by hand: what the other tests take for granted.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tests::fake_hub::{Body, FakeHub, File, On, Repo, Respond, Rule};

/// One request on a connection of its own: status, header, body.
fn ask(base: &str, method: &str, target: &str, headers: &[(&str, &str)]) -> (u16, String, Vec<u8>) {
    let address = base.strip_prefix("http://").unwrap().replace("localhost", "127.0.0.1");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    stream.write_all((text + "\r\n").as_bytes()).unwrap();
    let (mut all, mut buffer) = (Vec::new(), [0; 65536]);
    while let Ok(n) = stream.read(&mut buffer) {
        all.extend(&buffer[..n]);
        let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") else {
            continue;
        };
        let length = String::from_utf8_lossy(&all[..end])
            .lines()
            .find_map(|l| l.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        if n == 0 || length.is_some_and(|length| method == "HEAD" || all.len() >= end + 4 + length) {
            break;
        }
    }
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(all[..end].to_vec()).unwrap();
    (head[9..12].parse().unwrap(), head, all[end + 4..].to_vec())
}

fn location(head: &str) -> &str {
    head.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap()
}

fn hub() -> FakeHub {
    FakeHub::with(Repo::new(
        "org/name",
        [
            File::small("config.json", "{\"a\": 1}"),
            File::large("model.safetensors", Body::formula(300_000, 1)),
        ],
    ))
}

#[test]
fn the_formula_is_that_of_the_cases() {
    // Sizes, seeds and hashes as hub/cases.json has them.
    let hash = |seed| Body::formula(1_048_576, seed).sha256();
    assert_eq!(
        hash(1),
        "0ca9ccd4c2c7603d7bf9ffe7c5ae94b23db794acc7b3f8f73d6044309a9c4466"
    );
    assert_eq!(
        hash(2),
        "061f0009f620949705f18f68a9896dc6d60cd39f42fdc02b2af3fb66d7336130"
    );
    assert_eq!(
        Body::text("").git_oid(),
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "git's hash of the empty file"
    );
}

#[test]
fn a_large_file_is_redirected_to_another_host_that_serves_ranges() {
    let hub = hub();
    let (status, head, body) = ask(&hub.url(), "GET", "/org/name/resolve/main/model.safetensors", &[]);
    assert_eq!((status, body.len()), (302, 0));
    assert!(
        head.contains("X-Linked-Size: 300000") && head.contains("X-Repo-Commit: c0ffee"),
        "{head}"
    );
    let target = location(&head).strip_prefix(&hub.content_url()).unwrap();
    let (status, head, body) = ask(&hub.content_url(), "GET", target, &[("Range", "bytes=299000-")]);
    assert_eq!((status, body.len()), (206, 1000));
    assert!(head.contains("Content-Range: bytes 299000-299999/300000"), "{head}");
    assert_eq!(body, Body::formula(300_000, 1).bytes()[299_000..]);
    assert_eq!(
        ask(&hub.content_url(), "GET", target, &[("Range", "bytes=300000-")]).0,
        416
    );
    assert_eq!(hub.served(), 1000);
}

#[test]
fn faults_are_played_to_the_byte() {
    let hub = hub();
    let file = "/org/name/resolve/main/config.json";
    hub.rule(Rule::on(On::Content, Respond::cut_at(3)).times(1));
    assert_eq!(ask(&hub.url(), "GET", file, &[]).2, b"{\"a");
    hub.rule(Rule::on(On::Content, Respond::stall_at(4)).times(1));
    let start = Instant::now();
    assert_eq!(ask(&hub.url(), "GET", file, &[]).2.len(), 4);
    assert!(
        start.elapsed() >= Duration::from_millis(400),
        "the connection stays open"
    );
    let flip = Respond {
        flip: Some(2),
        ..Respond::default()
    };
    hub.rule(Rule::on(On::Content, flip).times(1));
    assert_ne!(ask(&hub.url(), "GET", file, &[]).2[2], b'a');
    assert_eq!(ask(&hub.url(), "GET", file, &[]).2, b"{\"a\": 1}");
    assert_eq!(hub.served(), 3 + 4 + 8 + 8);
}

#[test]
fn a_network_that_is_gone_refuses_and_comes_back() {
    let hub = hub();
    hub.go_down();
    let address = hub.url().replace("http://", "");
    assert!(TcpStream::connect(&address).is_err());
    hub.come_back();
    assert_eq!(ask(&hub.url(), "GET", "/api/models/org/name", &[]).0, 200);
}

//! `fake-hub REPOSITORY=FOLDER ...`: the hub on loopback as a program, for the stories. It prints its address, then does
//! what standard input says, one answer a line: `hold BYTE`, `speed BYTES`, `free`, `served`, `forget`. It ends with its
//! input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::io::BufRead;

use tests::fake_hub::{FakeHub, File, Repo};

fn main() {
    let hub = FakeHub::start();
    for argument in std::env::args().skip(1) {
        let (id, folder) = argument.split_once('=').expect("REPOSITORY=FOLDER");
        hub.add(Repo::new(id, File::all_in(folder.as_ref())));
    }
    println!("{}", hub.url());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (word, number) = line.split_once(' ').unwrap_or((&line, ""));
        let number = number.parse().ok();
        match word {
            "hold" => hub.hold_after(number),
            "speed" => hub.speed(number),
            "free" => {
                hub.hold_after(None);
                hub.speed(None);
                hub.cut_connections();
            }
            "forget" => hub.forget_requests(),
            "served" => {
                println!("{}", hub.served());
                continue;
            }
            other => panic!("what is {other}?"),
        }
        println!("ok");
    }
}

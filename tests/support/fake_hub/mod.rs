//! A hub on loopback that speaks the real one's protocol and plays faults byte by byte: listing, revision and tree,
//! search, `resolve` with a redirect to another host that serves ranges, gated and missing repositories. The hub is
//! `127.0.0.1`, the host of the bytes is `localhost`: two hosts, so that a token that travels is seen.

mod answers;
mod body;
mod content;
mod http;
mod repo;
mod rules;
mod tls;

use std::collections::HashMap;
use std::io::BufReader;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use body::{Body, hex};
pub use repo::{COMMIT, File, Repo};
pub use rules::{On, Respond, Rule, Trickle, When};

/// A request that came, and what has become of it.
#[derive(Debug)]
pub struct Request {
    pub on: On,
    pub method: String,
    /// Path and query.
    pub target: String,
    pub host: String,
    /// First byte and last byte asked for.
    pub range: Option<(u64, Option<u64>)>,
    pub authorization: Option<String>,
    /// Whether it came to the host of the bytes and not to the hub.
    pub content_host: bool,
    pub at: Instant,
    bytes: AtomicU64,
    held: AtomicBool,
}

impl Request {
    /// Bytes of the body that were sent.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    /// Whether the answer stopped early, by a cut, a stall or the hold of the whole hub.
    pub fn held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    /// First byte asked for.
    pub fn from(&self) -> u64 {
        self.range.map_or(0, |(first, _)| first)
    }
}

/// Where a body is found by the address that `resolve` redirects to.
#[derive(Clone)]
struct Blob {
    body: Body,
    etag: String,
}

#[derive(Default)]
struct Contents {
    repos: Vec<Repo>,
    blobs: HashMap<String, Blob>,
    rules: Vec<Rule>,
    /// No answer sends a byte of a file from this place on; the connection stays open.
    hold_after: Option<u64>,
    /// Bytes a second of each connection.
    speed: Option<u64>,
    page: usize,
}

struct State {
    contents: Mutex<Contents>,
    log: Mutex<Vec<Arc<Request>>>,
    /// Streams that are open, to cut them when the network goes.
    open: Mutex<Vec<TcpStream>>,
    busy: AtomicUsize,
    busiest: AtomicUsize,
    down: AtomicBool,
    listening: AtomicUsize,
    ending: Mutex<bool>,
    ended: Condvar,
    hub: SocketAddr,
    content: SocketAddr,
    /// Set where clients come by TLS.
    front: OnceLock<tls::Front>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The endpoint.
    fn url(&self) -> String {
        match self.front.get() {
            Some(front) => format!("https://127.0.0.1:{}", front.hub),
            None => format!("http://{}", self.hub),
        }
    }

    /// Where the bytes are, under another host name.
    fn content_url(&self) -> String {
        match self.front.get() {
            Some(front) => format!("https://localhost:{}", front.content),
            None => format!("http://localhost:{}", self.content.port()),
        }
    }

    /// Waits; `false` when the hub ends meanwhile.
    fn wait(&self, time: Duration) -> bool {
        let ending = lock(&self.ending);
        let (ending, _) = self
            .ended
            .wait_timeout_while(ending, time, |ending| !*ending)
            .unwrap_or_else(PoisonError::into_inner);
        !*ending
    }

    fn take_rule(&self, on: On, target: &str, authorization: bool, range: bool) -> Respond {
        let mut contents = lock(&self.contents);
        let Some(rule) = contents
            .rules
            .iter_mut()
            .find(|rule| rule.fits(on, target, authorization, range))
        else {
            return Respond::default();
        };
        rule.times = rule.times.map(|times| times - 1);
        rule.respond.clone()
    }
}

/// The hub. It ends when dropped.
pub struct FakeHub {
    state: Arc<State>,
    /// What runs the front of a hub that is reached by TLS.
    front: Option<tokio::runtime::Runtime>,
}

impl Default for FakeHub {
    fn default() -> Self {
        Self::start()
    }
}

impl FakeHub {
    /// An empty hub on two free ports.
    pub fn start() -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (hub, content) = (listen(), listen());
        let state = Arc::new(State {
            contents: Mutex::new(Contents {
                page: 1000,
                ..Contents::default()
            }),
            log: Mutex::default(),
            open: Mutex::default(),
            busy: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
            down: AtomicBool::new(false),
            listening: AtomicUsize::new(0),
            ending: Mutex::new(false),
            ended: Condvar::new(),
            hub: hub.local_addr().unwrap(),
            content: content.local_addr().unwrap(),
            front: OnceLock::new(),
        });
        accept(hub, &state, false);
        accept(content, &state, true);
        FakeHub { state, front: None }
    }

    /// From now on its addresses are `https`. Gives the certificate of the authority that vouches for them, as PEM.
    pub fn secure(&mut self) -> String {
        let (front, runtime, authority) = tls::start(self.state.hub, self.state.content);
        self.state.front.set(front).expect("it is secure already");
        self.front = Some(runtime);
        authority
    }

    /// A hub with one repository.
    pub fn with(repo: Repo) -> Self {
        let hub = FakeHub::start();
        hub.add(repo);
        hub
    }

    /// The endpoint.
    pub fn url(&self) -> String {
        self.state.url()
    }

    /// Where the bytes are, under another host name.
    pub fn content_url(&self) -> String {
        self.state.content_url()
    }

    /// Adds a repository, or replaces the one of that name.
    pub fn add(&self, repo: Repo) {
        let mut contents = lock(&self.state.contents);
        for file in &repo.files {
            let etag = file.etag();
            contents.blobs.insert(
                etag.clone(),
                Blob {
                    body: file.body.clone(),
                    etag,
                },
            );
        }
        contents.repos.retain(|other| other.id != repo.id);
        contents.repos.push(repo);
    }

    pub fn rule(&self, rule: Rule) {
        lock(&self.state.contents).rules.push(rule);
    }

    pub fn clear_rules(&self) {
        lock(&self.state.contents).rules.clear();
    }

    /// From this byte of a file on nothing is sent, and connections stay open: the moment to kill a program at.
    pub fn hold_after(&self, byte: Option<u64>) {
        lock(&self.state.contents).hold_after = byte;
    }

    /// Bytes a second of each connection that carries a file.
    pub fn speed(&self, bytes: Option<u64>) {
        lock(&self.state.contents).speed = bytes;
    }

    /// Files on a page of the tree.
    pub fn page(&self, files: usize) {
        lock(&self.state.contents).page = files;
    }

    /// The network goes: every connection breaks, and new ones are refused.
    pub fn go_down(&self) {
        self.state.down.store(true, Ordering::SeqCst);
        self.wake_listeners();
        self.cut_connections();
    }

    /// The network is back, on the same ports.
    pub fn come_back(&self) {
        self.state.down.store(false, Ordering::SeqCst);
        accept(bind_again(self.state.hub), &self.state, false);
        accept(bind_again(self.state.content), &self.state, true);
    }

    /// Breaks every connection that is open now.
    pub fn cut_connections(&self) {
        for stream in lock(&self.state.open).drain(..) {
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// An accepting thread sees that it should end at the next connection.
    fn wake_listeners(&self) {
        while self.state.listening.load(Ordering::SeqCst) > 0 {
            for address in [self.state.hub, self.state.content] {
                // Refused: then nobody listens there any more.
                let _ = TcpStream::connect(address);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        lock(&self.state.log).clone()
    }

    pub fn forget_requests(&self) {
        lock(&self.state.log).clear();
        self.state.busiest.store(0, Ordering::SeqCst);
    }

    /// The requests that carried bytes of files.
    pub fn content_gets(&self) -> Vec<Arc<Request>> {
        let mut requests = self.requests();
        requests.retain(|request| request.on == On::Content && request.method == "GET");
        requests
    }

    /// Bytes of files sent.
    pub fn served(&self) -> u64 {
        self.content_gets().iter().map(|request| request.bytes()).sum()
    }

    /// Most requests for bytes that were answered at the same time.
    pub fn busiest(&self) -> usize {
        self.state.busiest.load(Ordering::SeqCst)
    }

    /// Waits until something is so, at most `limit`; whether it came to be.
    pub fn until(&self, limit: Duration, so: impl Fn(&FakeHub) -> bool) -> bool {
        let start = Instant::now();
        while !so(self) {
            if start.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Waits until an answer stands still in mid-body.
    pub fn until_held(&self, limit: Duration) -> bool {
        self.until(limit, |hub| hub.content_gets().iter().any(|request| request.held()))
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        *lock(&self.state.ending) = true;
        self.state.ended.notify_all();
        self.go_down();
        if let Some(front) = self.front.take() {
            // Also from where nothing may wait.
            front.shutdown_background();
        }
    }
}

/// The kernel may hold the port for a moment after the old listener is gone.
fn bind_again(address: SocketAddr) -> TcpListener {
    let start = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Ok(listener) => return listener,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(5), "{address}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn accept(listener: TcpListener, state: &Arc<State>, content_host: bool) {
    let state = Arc::clone(state);
    state.listening.fetch_add(1, Ordering::SeqCst);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            if state.down.load(Ordering::SeqCst) {
                break;
            }
            // Loopback knows no small packets worth waiting for.
            let _ = stream.set_nodelay(true);
            if let Ok(copy) = stream.try_clone() {
                lock(&state.open).push(copy);
            }
            let state = Arc::clone(&state);
            std::thread::spawn(move || serve(stream, &state, content_host));
        }
        drop(listener);
        state.listening.fetch_sub(1, Ordering::SeqCst);
    });
}

fn serve(mut stream: TcpStream, state: &State, content_host: bool) {
    let Ok(copy) = stream.try_clone() else { return };
    let mut reader = BufReader::new(copy);
    while let Some(head) = http::Head::read(&mut reader) {
        if !answers::answer(state, &mut stream, &head, content_host).unwrap_or(false) {
            break;
        }
    }
    // The copy kept to cut connections with would hold it open.
    let _ = stream.shutdown(Shutdown::Both);
    let peer = stream.peer_addr().ok();
    lock(&state.open).retain(|other| other.peer_addr().ok().is_some_and(|address| Some(address) != peer));
}

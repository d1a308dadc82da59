"""What the official client does with a cache: `interop.py STEP REPO`, told where by HF_ENDPOINT and HF_HOME."""

import sys
import time

try:
    import huggingface_hub
    from huggingface_hub import scan_cache_dir, snapshot_download
except ImportError:
    print("huggingface_hub is not installed for this Python (HUB_PYTHON)", file=sys.stderr)
    sys.exit(77)

step, repo = sys.argv[1:]

if step == "version":
    print(huggingface_hub.__version__)
elif step == "offline":
    print(snapshot_download(repo, local_files_only=True))
elif step == "online":
    print(snapshot_download(repo))
elif step == "timed":
    start = time.monotonic()
    snapshot_download(repo)
    print(time.monotonic() - start)
elif step == "scan":
    cache = scan_cache_dir()
    for found in cache.repos:
        for revision in found.revisions:
            refs = " ".join(sorted(revision.refs))
            files = len(revision.files)
            print(f"{found.repo_id} {refs} {revision.commit_hash} {files} files {len(cache.warnings)} warnings")
else:
    sys.exit(f"no step {step}")

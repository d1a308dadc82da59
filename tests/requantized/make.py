#!/usr/bin/env python3
"""Reference ids for every quantization mode, from mlx-vlm on the CPU.

    python make.py [dense|moe|inkling ...] [--out DIR] [--seeds FIRST LAST]

Needs mlx 0.32.2 (the version the program links), mlx-vlm 0.7.10, numpy and safetensors. With --seeds nothing is written: each seed
is tried and its smallest margins are printed.

DIR/{dense,moe}/{target,drafter}/ (default: beside this file) get a tiny random checkpoint and its MTP head in MLX layout: bfloat16,
`A_log` float32, not quantized, every matrix with an input dimension divisible by 128. Inkling has no checkpoint of its own here: its
target and head are tests/golden/inkling/mlx and mlx-mtp, its seed is only the prompt's. DIR/{dense,moe,inkling}/ref.json gets, for each
mode, what a checkpoint made from them like this gives:

* every base tensor is converted to float32 (exact), so the scales and biases of affine modes come out float32;
* of every Linear, embedding and expert stack named `X.weight` - also `embed_tokens`, `lm_head` and matrices of 1 to 4 rows, but
  neither `conv1d` nor norms - `mlx.quantize(weight, mode, bits, group_size)` gives `X.weight` (packed), `X.scales` and, in affine
  modes, `X.biases`; a module named in `quantization` takes that entry in place of the defaults (no `mode` there means affine), one
  that is `false` stays float32;
* Inkling: these are exactly the modules of the entry's `packed`, which is to be followed as it stands. By the rule above they are all
  `X.weight` of two or three dimensions but the convolutions (`*_sconv.conv`), so neither `gate_weight` nor `rel_proj`; with groups of 64
  the experts' `down_proj`, whose rows have 32 numbers, stay as they are and `quantization` says nothing of it, as mlx-vlm converts.
  `packed` has the names in the files: q, k, v and r apart in the target, `qkvr_proj` in the head. mlx-vlm joins the four on loading
  and goes by the settings of `q_proj`, so they are packed alike;
* all other tensors stay float32, and so do all activations.

ref.json: prompt; modes and heads with
  quantization   what stands in config.json under this key
  packed         Inkling only: the packed modules, without `.weight`; all else is float32
  ids            greedy ids, one token at a time after the prompt in one pass
  min_margin     smallest distance of the two best logits over these ids
  accept         accepted drafts of each round of mlx-vlm's `_mtp_rounds` by block size, head prefilled with the whole prompt; its ids are
                 asserted to be `ids`. The last round may be shorter than the block: only `len(ids)` tokens are generated in all
  draft_margin   smallest distance of the two best logits over all drafts
  packed_sha256  of the little-endian bytes of the named tensors, row-major: packed words as uint32, scales float32 (uint8 in fp modes),
                 biases float32
The modes run with the head as it is, in float32. `heads` names the mode of the target and the head's own `quantization` (null: none).
"""
import argparse, hashlib, json, logging, math, tempfile
from pathlib import Path

import numpy as np
import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_vlm.models.inkling.language import fuse_qkvr
from mlx_vlm.speculative.mtp import _mtp_rounds
from mlx_vlm.utils import load_model

mx.set_default_device(mx.cpu)
logging.disable(logging.WARNING)  # "no weights for vision_tower" for every model
assert mx.__version__ == "0.32.2", mx.__version__
V, H, NEW, BLOCKS = 160, 128, 48, (3, 4)
PROMPT = [11, 5, 93, 40, 7, 128, 64, 150, 2, 77, 31, 109]
SEEDS = {"dense": 0, "moe": 0, "inkling": 12}  # large margins in every mode
EOS = {"dense": 159, "moe": 159, "inkling": 149}
GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "inkling"
LM = "language_model.model."
GAIN = 1.6  # of the layers' outputs beside the embedding: enough that quantization changes some ids


# ---------------------------------------------------------------- the two checkpoints
def config(family):
    moe = family == "moe"
    layers = 2 if moe else 3
    text = dict(
        model_type="qwen3_5_moe_text" if moe else "qwen3_5_text", vocab_size=V, hidden_size=H, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, linear_num_key_heads=1, linear_num_value_heads=4,
        linear_key_head_dim=32, linear_value_head_dim=32, linear_conv_kernel_dim=4, full_attention_interval=layers,
        layer_types=["linear_attention"] * (layers - 1) + ["full_attention"], attn_output_gate=True, attention_bias=False,
        hidden_act="silu", rms_norm_eps=1e-6, max_position_embeddings=4096, tie_word_embeddings=False, mtp_num_hidden_layers=1,
        mtp_use_dedicated_embeddings=False, eos_token_id=159,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25, mrope_section=[2, 1, 1],
                             mrope_interleaved=True))
    if moe:
        text.update(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=128, shared_expert_intermediate_size=128,
                    norm_topk_prob=True)
    else:
        text.update(intermediate_size=128)
    name = "qwen3_5_moe" if moe else "qwen3_5"
    target = dict(model_type=name, text_config=text, eos_token_id=[159], tie_word_embeddings=False, image_token_id=155,
                  video_token_id=156, vision_start_token_id=157, vision_end_token_id=158)
    head = dict(model_type="qwen3_5_mtp", block_size=3, text_config=text, tie_word_embeddings=False)
    return target, head


class Weights:
    def __init__(self, seed):
        self.g, self.d = np.random.Generator(np.random.PCG64(seed)), {}

    def put(self, name, values):
        dtype = mx.float32 if name.endswith("A_log") else mx.bfloat16
        self.d[name] = mx.array(np.asarray(values, np.float32)).astype(dtype)

    def linear(self, name, rows, cols, gain=1.0, lead=()):
        self.put(name + ".weight", self.g.normal(0, gain / math.sqrt(cols), size=(*lead, rows, cols)))

    def norm(self, name, n):
        self.put(name + ".weight", 1 + 0.1 * self.g.normal(size=n))

    def layer(self, p, t, full, gain):
        self.norm(p + "input_layernorm", H)
        self.norm(p + "post_attention_layernorm", H)
        if full:
            D, q, kv, a = t["head_dim"], t["num_attention_heads"], t["num_key_value_heads"], p + "self_attn."
            self.linear(a + "q_proj", 2 * q * D, H)  # queries and the output gate
            self.linear(a + "k_proj", kv * D, H)
            self.linear(a + "v_proj", kv * D, H)
            self.linear(a + "o_proj", H, q * D, 2 * gain)
            self.norm(a + "q_norm", D)
            self.norm(a + "k_norm", D)
        else:
            heads, a = t["linear_num_value_heads"], p + "linear_attn."
            keys = t["linear_num_key_heads"] * t["linear_key_head_dim"]
            values = heads * t["linear_value_head_dim"]
            self.linear(a + "in_proj_qkv", 2 * keys + values, H)
            self.linear(a + "in_proj_z", values, H)
            self.linear(a + "in_proj_b", heads, H)
            self.linear(a + "in_proj_a", heads, H)
            self.put(a + "conv1d.weight", self.g.normal(0, 0.5, size=(2 * keys + values, 4, 1)))
            self.put(a + "dt_bias", self.g.normal(0, 0.5, size=heads))
            self.put(a + "A_log", np.log(self.g.uniform(0.5, 4.0, size=heads)))
            self.norm(a + "norm", t["linear_value_head_dim"])
            self.linear(a + "out_proj", H, values, gain)
        stacks = [("", (), t.get("intermediate_size"))]
        if "num_experts" in t:
            self.linear(p + "mlp.gate", t["num_experts"], H, 2.0)
            self.linear(p + "mlp.shared_expert_gate", 1, H)
            stacks = [("switch_mlp.", (t["num_experts"],), t["moe_intermediate_size"]),
                      ("shared_expert.", (), t["shared_expert_intermediate_size"])]
        for stack, lead, inner in stacks:
            for side in ("gate_proj", "up_proj"):
                self.linear(f"{p}mlp.{stack}{side}", inner, H, lead=lead)
            self.linear(f"{p}mlp.{stack}down_proj", H, inner, 2 * gain, lead=lead)


def base(family, seed):
    """Config and tensors of target and head. The row of the output matrix for token next(t) resembles the embedding of t, next being
    one cycle through the vocabulary: what follows depends on the last token first, on all others enough to leave the cycle, and a head
    that passes embeddings on drafts a part of it right."""
    target, head = config(family)
    t, w = target["text_config"], Weights(seed)
    embed = w.g.normal(size=(V, H))
    cycle = w.g.permutation(V)
    out = 0.15 * w.g.normal(size=(V, H))
    out[np.roll(cycle, -1)] += embed[cycle]
    out[159] = 0  # the end token does not come up
    w.put(LM + "embed_tokens.weight", embed)
    w.put("language_model.lm_head.weight", out / math.sqrt(H))
    for i, kind in enumerate(t["layer_types"]):
        w.layer(f"{LM}layers.{i}.", t, kind == "full_attention", GAIN)
    w.norm(LM + "norm", H)
    m = Weights(seed + 1000)
    m.put("fc.weight", np.concatenate([np.eye(H), 0.5 * np.eye(H)], 1) + m.g.normal(0, 0.03, size=(H, 2 * H)))
    m.norm("pre_fc_norm_embedding", H)
    m.norm("pre_fc_norm_hidden", H)
    m.layer("layers.0.", t, True, 0.4)
    m.norm("norm", H)
    return (target, w.d), (head, m.d)


def golden():
    """Config and tensors of Inkling's target and head: the unquantized golden fixtures."""
    return [(json.loads((GOLDEN / d / "config.json").read_text()), mx.load(str(GOLDEN / d / "model.safetensors")))
            for d in ("mlx", "mlx-mtp")]


def save(folder, cfg, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    mx.eval(list(tensors.values()))
    mx.save_safetensors(str(folder / "model.safetensors"), tensors, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(cfg, indent=1) + "\n")
    return folder


# ---------------------------------------------------------------- quantization
def requantize(tensors, quantization):
    """`tensors` as they stand in a checkpoint with this `quantization`; None leaves the matrices as they are."""
    out = {}
    for name, a in tensors.items():
        a = a.astype(mx.float32)
        module = name.removesuffix(".weight")
        how = quantization and quantization.get(module, {k: quantization[k] for k in ("group_size", "bits", "mode")})
        if not how or name == module or a.ndim < 2 or ".conv" in name or a.shape[-1] % how["group_size"]:
            out[name] = a
            continue
        parts = mx.quantize(a, **{"mode": "affine", **how})
        out.update(zip((name, module + ".scales", module + ".biases"), parts))
    return out


def modes(family, names):
    def q(mode, bits, group, **overrides):
        return {"group_size": group, "bits": bits, "mode": mode, **overrides}

    if family == "inkling":
        for bits, group in ((4, 32), (4, 64), (8, 32), (8, 64), (5, 32), (6, 64)):
            yield f"affine-{bits}-{group}", q("affine", bits, group)
        yield "mxfp4", q("mxfp4", 4, 32)
        yield "mxfp8", q("mxfp8", 8, 32)
        yield "nvfp4", q("nvfp4", 4, 16)
        layer = LM + "layers.1."
        finer = [n.removesuffix(".weight") for n in names if n.startswith(layer) and n.endswith("_proj.weight")]
        yield "mixed-4-8", q("affine", 4, 32, **{n: {"group_size": 32, "bits": 8} for n in sorted(finer)})
        return
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            yield f"affine-{bits}-{group}", q("affine", bits, group)
    yield "mxfp4", q("mxfp4", 4, 32)
    yield "mxfp8", q("mxfp8", 8, 32)
    yield "nvfp4", q("nvfp4", 4, 16)
    finer = ("mlp.gate.weight", "mlp.shared_expert_gate.weight") if family == "moe" else ("_proj.weight",)
    inside = "" if family == "moe" else "self_attn."
    eight = {n.removesuffix(".weight"): {"group_size": 64, "bits": 8} for n in names if n.endswith(finer) and inside in n}
    yield "mixed-4-8", q("affine", 4, 64, **eight)
    yield "mixed-mxfp4-8", q("mxfp4", 4, 32, **eight)
    yield "head-kept", q("affine", 4, 64, **{"language_model.lm_head": False})


def packed_modules(tensors):
    return sorted(n.removesuffix(".scales") for n in tensors if n.endswith(".scales"))


def digests(tensors, modules):
    out = {}
    for m in modules:
        for part in ("weight", "scales", "biases"):
            if (a := tensors.get(f"{m}.{part}")) is not None:
                out[f"{m}.{part}"] = hashlib.sha256(np.ascontiguousarray(np.array(a)).tobytes()).hexdigest()
    return out


# ---------------------------------------------------------------- runs
def load(cfg, tensors, quantization):
    with tempfile.TemporaryDirectory() as d:
        model = load_model(save(Path(d), {**cfg, "quantization": quantization} if quantization else cfg, tensors))
        # What was loaded is what was written: nothing converted, nothing left out. Only Inkling's q, k, v and r are joined.
        written = fuse_qkvr(tensors) if any(n.endswith(".r_proj.weight") for n in tensors) else tensors
        loaded = tree_flatten(model.parameters())
        assert len(loaded) == len(written)
        for name, a in loaded:
            assert name in written and a.dtype == written[name].dtype and bool(mx.all(a == written[name])), name
        # What was packed is all that can be, but for what the groups do not fit.
        for name, module in model.named_modules():
            if hasattr(module, "to_quantized"):
                assert not quantization or quantization.get(name) is False or module.weight.shape[-1] % quantization["group_size"], name
        return model


def margin(logits):
    top = mx.sort(logits.reshape(-1, logits.shape[-1]), axis=-1)[:, -2:]
    return float(mx.min(top[:, 1] - top[:, 0]))


def greedy(lm, prompt):
    cache, step, ids, margins = lm.make_cache(), prompt, [], []
    for _ in range(NEW):
        logits = lm(mx.array([step]), cache=cache).logits[0, -1]
        margins.append(margin(logits))
        step = [int(mx.argmax(logits))]
        ids += step
    return ids, min(margins)


def speculate(model, drafter, prompt, block):
    """Ids, accepted drafts of each round and the smallest margin of a draft."""
    lm = model.language_model
    cache = lm.make_cache()
    out = lm(mx.array([prompt]), cache=cache, return_hidden=True, return_shared_kv=True)
    ids, accepted, margins = [int(mx.argmax(out.logits[0, -1]))], [], []
    bind, accept = drafter.bind, drafter.accept_verified_tokens

    def watched_bind(target):
        result = bind(target)
        head, drafter._greedy_argmax_fn = drafter._lm_head_fn, None

        def watched_head(h):
            logits = head(h)
            margins.append(margin(logits[..., :getattr(drafter, "_uv", None)]))  # Inkling: without the padding
            return logits
        drafter._lm_head_fn = watched_head
        return result

    def watched_accept(hidden, drafts, n, *rest, **kw):
        accepted.append(int(n))
        return accept(hidden, drafts, n, *rest, **kw)
    drafter.bind, drafter.accept_verified_tokens = watched_bind, watched_accept
    try:
        for token, _ in _mtp_rounds(model, drafter, cache, out.hidden_states[-1], {}, prompt_tokens=mx.array([prompt]),
                                    first_bonus=ids[0], max_tokens=NEW, sampler=lambda x: mx.argmax(x, axis=-1),
                                    draft_block_size=block, greedy_sampling=True):
            ids.append(int(token))
    finally:
        del drafter.bind, drafter.accept_verified_tokens
    return ids, accepted, min(margins)


def reference(model, drafter, prompt, eos):
    ids, smallest = greedy(model.language_model, prompt)
    assert eos not in ids, "ends early"
    runs = {str(b): speculate(model, drafter, prompt, b) for b in BLOCKS}
    assert all(r[0] == ids for r in runs.values()), "speculation changed the ids"
    return {"ids": ids, "min_margin": float(f"{smallest:.3g}"), "accept": {b: r[1] for b, r in runs.items()},
            "draft_margin": float(f"{min(r[2] for r in runs.values()):.3g}")}


def run(family, seed, quick=False):
    ink = family == "inkling"
    (cfg, tensors), (hcfg, head) = golden() if ink else base(family, seed)
    prompt = np.random.Generator(np.random.PCG64(seed)).integers(0, EOS[family], 12).tolist() if ink else PROMPT
    experts = {"dense": "0.mlp.down_proj", "moe": "0.mlp.switch_mlp.down_proj", "inkling": "1.mlp.switch_mlp.gate_proj"}
    shown = [LM + "embed_tokens", LM + "layers." + experts[family]]
    hshown = "blocks.1.input_proj" if ink else "fc"

    def entry(model, drafter, packed):
        only = {"packed": packed_modules(packed)} if ink else {}
        return {**only, **reference(model, drafter, prompt, EOS[family])}
    bare = load(hcfg, requantize(head, None), None)
    ref, models = {"prompt": prompt, "modes": [], "heads": []}, {}
    for name, quantization in [("none", None), *modes(family, tensors)]:
        packed = requantize(tensors, quantization)
        models[name] = load(cfg, packed, quantization)
        found = entry(models[name], bare, packed)
        if quick and min(found["min_margin"], found["draft_margin"]) < quick:
            print(family, seed, "rejected by", name, found["min_margin"], found["draft_margin"], flush=True)
            return None
        sums = digests(packed, shown) if quantization else {}
        ref["modes"].append({"name": name, "quantization": quantization, **found, "packed_sha256": sums})
    small = {"group_size": 32, "bits": 4, "mode": "affine"}
    heads = {"inkling": (("affine-4-32", None), ("affine-8-32", small))}.get(
        family, (("affine-4-64", None), ("affine-8-64", {**small, "group_size": 64}), ("affine-4-64", {**small, "mode": "mxfp4"})))
    for target, hq in heads:
        packed = requantize(head, hq)
        ref["heads"].append({"target": target, "quantization": hq, **entry(models[target], load(hcfg, packed, hq), packed),
                             "packed_sha256": digests(packed, [hshown]) if hq else {}})
    both = ref["modes"] + ref["heads"]
    drafts = [a for e in both for v in e["accept"].values() for a in v]
    print(family, seed, "margin", min(e["min_margin"] for e in both), "drafts", min(e["draft_margin"] for e in both),
          "different ids", len({tuple(e["ids"]) for e in both}), "different tokens", len(set(ref["modes"][0]["ids"])),
          "accepted a round", round(sum(drafts) / len(drafts), 2), flush=True)
    return cfg, tensors, hcfg, head, ref


def write_ref(path, ref):
    def line(x):
        return json.dumps(x, separators=(",", ":"))
    parts = [f'"prompt":{line(ref["prompt"])}']
    for key in ("modes", "heads"):
        parts.append(f'"{key}":[\n' + ",\n".join(map(line, ref[key])) + "\n]")
    path.write_text("{" + ",\n".join(parts) + "}\n")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("families", nargs="*")
    ap.add_argument("--out", type=Path, default=Path(__file__).parent)
    ap.add_argument("--seeds", type=int, nargs=2)
    args = ap.parse_args()
    for family in args.families or ("dense", "moe", "inkling"):
        if args.seeds:
            for seed in range(*args.seeds):
                try:
                    run(family, seed, quick=1e-3)
                except AssertionError as e:
                    print(family, seed, "rejected:", e, flush=True)
            continue
        cfg, tensors, hcfg, head, ref = run(family, SEEDS[family])
        if family != "inkling":
            save(args.out / family / "target", cfg, tensors)
            save(args.out / family / "drafter", hcfg, head)
        (args.out / family).mkdir(parents=True, exist_ok=True)
        write_ref(args.out / family / "ref.json", ref)


if __name__ == "__main__":
    main()

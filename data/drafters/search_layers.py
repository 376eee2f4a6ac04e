"""Which layers of a model can be left out with the least harm? Early exits and a greedy search, kept as JSON.

    python data/drafters/search_layers.py [--model FILE] [--drop 10] [--to FILE] [--resume]

Without --model it searches the embedded model, and by default writes layer_sets.json beside this file: about ten
minutes on two cores. What was found is saved after every step; --resume goes on from there. See specnb.layer_search.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from specnb import backend, layer_search, machine, models, store
from specnb.records import LayerSearch


def source_and_default(name: str | None) -> tuple[Path, Path]:
    """(the file to search, where its result goes unless --to says so)."""
    if name is None:
        # F16 decodes a long text several times faster than the embedded Q4_1, with the same weights.
        return models.in_format(models.embedded(), "F16"), store.DATA / "drafters" / "layer_sets.json"
    source = models.resolve(name)
    models.trusted(source)
    return source, Path(f"{source.stem}.layer_sets.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a GGUF file or hub id (default: the embedded model)")
    parser.add_argument("--drop", type=int, default=10, help="how many layers to leave out at most (default: 10)")
    parser.add_argument("--to", type=Path, help="the JSON file to write")
    parser.add_argument("--resume", action="store_true", help="go on with the search in the JSON file")
    arguments = parser.parse_args()
    source, default = source_and_default(arguments.model)
    to = arguments.to or default
    made_on = machine.this_machine(backend.build_info(), gpu=backend.gpu_offload())

    def keep(found: LayerSearch) -> None:
        newest = (found.sets or found.early_exits)[-1]
        kind = "searched" if found.sets else "first"
        print(f"{len(newest.layers)} layers ({kind}): {newest.agreement:.3f}  {list(newest.layers)}", flush=True)
        store.save(found, to, machine=made_on)

    resume = store.load(to, LayerSearch) if arguments.resume else None
    layer_search.search(source, n_drop=arguments.drop, resume=resume, on_found=keep)


if __name__ == "__main__":
    main()

"""The page docs/profiles.md: what each profile of the specification asks for, and how far we are. tools/conformance.py writes it.

docs/profiles.tsv has the features (see its head); their state is that of their checklist items, so it cannot be said by hand.
"""

COLUMNS = 7
LEVELS = {"must", "may", "-", "deferrable", "exact", "wildcard"}
SOURCES = {"quoted", "reasoned"}

HEAD = """# Profiles

Made by `tools/conformance.py` from `docs/profiles.tsv` and the states of the checklist items in [conformance.md](conformance.md); do not
edit. The specification (UE 1.0.x) itself was not at hand: "quoted" rows come from public quotations of its tables, "reasoned" ones from
[docs/protocol/ses.md](protocol/ses.md), section 18. Items are those of our own [checklists](checklists). A feature is *there* when every item of it is tested, or implemented in a way that another
test sees; *different* when an item deviates on purpose; *partly there* when some items are missing.

| feature | AI Base | AI Full | HPC | source | state | items | |
|---|---|---|---|---|---|---|---|
"""


def read(root):
    """(feature, three levels, source, items as written, note) of each line."""
    rows = []
    for line in (root / "docs" / "profiles.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            rows.append(line.split("\t"))
    return rows


def complaints(rows, known, expand):
    for row in rows:
        if len(row) != COLUMNS:
            yield f"docs/profiles.tsv: {row[0]}: {len(row)} columns, not {COLUMNS}"
            continue
        if not set(row[1:4]) <= LEVELS or row[4] not in SOURCES:
            yield f"docs/profiles.tsv: {row[0]}: unknown level or source"
        for identifier, written in expand(row[5]):
            if identifier not in known:
                yield f"docs/profiles.tsv: {row[0]}: {written} is no item"


def state_of(states):
    """Of a feature, by those of its items."""
    if all(state in ("tested", "implemented") for state in states):
        return "there"
    if all(state in ("tested", "implemented", "different") for state in states):
        return "different"
    if any(state in ("tested", "implemented", "different") for state in states):
        return "partly there"
    return "not there"


def page(rows, state_of_item, expand):
    """`state_of_item`: of an identifier, one of tested, implemented, different, later, to do."""
    lines, count = [], {}
    for feature, base, full, hpc, source, items, note in rows:
        states = {identifier: state_of_item(identifier) for identifier, _ in expand(items)}
        state = state_of(states.values())
        for name, level in (("AI Base", base), ("AI Full", full), ("HPC", hpc)):
            if level in ("must", "exact", "wildcard"):
                there, asked = count.get(name, (0, 0))
                count[name] = (there + (state == "there"), asked + 1)
        missing = [i for i, s in states.items() if s not in ("tested", "implemented", "different")]
        said = [note] if note else []
        if state == "partly there":
            said.append("missing: " + ", ".join(missing))
        lines.append(f"| {feature} | {base} | {full} | {hpc} | {source} | {state} | {items} | {'; '.join(said)} |\n")
    sums = "".join(f"{name}: {there} of {asked} features that it asks for are there.\n" for name, (there, asked) in count.items())
    return HEAD + "".join(lines) + "\n" + sums

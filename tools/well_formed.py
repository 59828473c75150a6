"""Checks that YAML and TOML files can be read: ``python tools/well_formed.py FILE ...``."""

import sys
import tomllib
from pathlib import Path

import yaml


class UniqueKeys(yaml.SafeLoader):
    """Refuses a mapping with a key twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        """The mapping, if its keys are unique."""
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        doubled = {key for key in keys if keys.count(key) > 1}
        if doubled:
            raise yaml.constructor.ConstructorError(
                None, None, f"keys occur twice: {doubled}", node.start_mark
            )
        return super().construct_mapping(node, deep=deep)


def problem_of(path: Path) -> str | None:
    """Why a file cannot be read, if it cannot."""
    text = path.read_text(encoding="utf-8")
    try:
        if path.suffix == ".toml":
            tomllib.loads(text)
        else:
            list(yaml.load_all(text, UniqueKeys))
    except (tomllib.TOMLDecodeError, yaml.YAMLError) as error:
        return f"{path}: {error}"
    return None


def main() -> int:
    """Print what cannot be read; 1 when something cannot."""
    problems = [problem for name in sys.argv[1:] if (problem := problem_of(Path(name)))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the steps of a Dockerfile in a folder, without docker: COPY and RUN, with ENV and WORKDIR.

The base image is what the caller puts into the folder. Paths below `/opt` lie in the folder, in the text of the steps,
too. A step with an instruction that is not known here fails.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dockerfile_parse import DockerfileParser


class Image:
    """What the steps leave: `root` is the folder that stands for /, `base` the image that FROM names."""

    def __init__(self, dockerfile: Path, context: Path, root: Path, environ: Mapping[str, str]) -> None:
        self.root, self.context, self.environ = root, context, dict(environ)
        self.base = ""
        self.user = "0"
        self._folder = root
        self._shell = ["/bin/sh", "-c"]
        known = {
            "FROM": self._from,
            "SHELL": self._set_shell,
            "ENV": self._env,
            "USER": self._user,
            "WORKDIR": self._workdir,
            "COPY": self._copy,
            "RUN": self.run,
        }
        for step in DockerfileParser(str(dockerfile)).structure:
            if step["instruction"] != "COMMENT":
                known[step["instruction"]](step["value"])

    def path(self, absolute: str) -> Path:
        """Where a path of the image lies."""
        return self.root / absolute.lstrip("/")

    def run(self, command: str) -> str:
        """Run a command in the image's working folder; return what it printed. Fails the test if it fails."""
        done = subprocess.run(
            [*self._shell, self._moved(command)],
            cwd=self._folder,
            env=self.environ,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def _moved(self, text: str) -> str:
        return re.sub(r"(?<![\w/.])/opt/", f"{self.root}/opt/", text)

    def _from(self, value: str) -> None:
        self.base = value

    def _set_shell(self, value: str) -> None:
        self._shell = json.loads(value)

    def _env(self, value: str) -> None:
        name, _, content = value.partition("=")
        self.environ[name] = self._moved(content)

    def _user(self, value: str) -> None:
        self.user = value

    def _workdir(self, value: str) -> None:
        self._folder = self.path(value)
        self._folder.mkdir(parents=True, exist_ok=True)

    def _copy(self, value: str) -> None:
        *sources, target = shlex.split(value)
        for pattern in sources:
            found = list(self.context.glob(pattern))
            assert found, f"COPY {pattern}: the build context has no such file"
            for source in found:
                if source.is_dir():
                    shutil.copytree(source, self.path(target), dirs_exist_ok=True)
                else:
                    shutil.copy(source, self.path(target))

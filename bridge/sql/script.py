"""Loads a script: parses it, resolves its tables and views, and plans its INSERTs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from bridge.config.substitute import Secrets, Substitution, databricks_secret, environment
from bridge.definition import BadRecords
from bridge.errors import DefinitionError, OptionError, UnsupportedError
from bridge.secret import Secret
from bridge.sql.connectors import CHANGE_OPTIONS, Table, resolve_table, with_change_options
from bridge.sql.inserts import plan_insert, plan_query, plan_view
from bridge.sql.parse import parse_script
from bridge.sql.plan import InsertPlan, Script
from bridge.sql.relation import QueryColumn
from bridge.sql.scope import Catalogue
from bridge.sql.settings import ALLOW_LATENESS, CLOSED_WINDOWS, Settings, settings
from bridge.sql.statements import CreateTable, CreateView, Explain, Insert, SetOption, Statement
from bridge.sql.tree import Substitute
from bridge.user_files import folder_of, location_of, read_text

_PROCTIME = "a row may be computed again, so it has no time of processing"


def load_script(
    path: str | Path,
    *,
    text: str | None = None,
    environ: Mapping[str, str] | None = None,
    secrets: Secrets = databricks_secret,
) -> Script:
    """Loads a script and checks all of it; connects neither to Kafka nor to a table, and starts no Spark.

    With `text` that is the script, and `path` only names it. `environ` (by default `environment()`) and `secrets`
    resolve references, `${env:...}` and the like, in the values of WITH and SET and in strings of queries; only WITH
    takes secrets. Raises DdlError with file, line and column for what is illegal, UnsupportedError for what this
    version cannot run, and OptionError for options. No message contains a secret.
    """
    file = location_of(path)
    loading, statements, given = _loaded(file, text, environ, secrets)
    tables = tuple(loading.catalogue.tables())
    script = Script(
        name=given.name or PurePosixPath(file).stem,
        file=file,
        base=loading.base,
        statements=statements,
        tables=tables,
        views=tuple(view.name for view in loading.catalogue.views()),
        inserts=tuple(loading.inserts),
        explained=tuple(loading.explained),
        state=given.state,
        removes_closed=given.removes_closed,
        bad_records=given.bad_records,
        step_timeout_seconds=given.step_timeout_seconds,
        monitoring=given.monitoring.relative_to(loading.base),
        warnings=(
            *given.warnings,
            *_unused(given.lateness_ms, loading.inserts, tables),
            *(f"table {t.name}: {w}" for t in tables for w in t.warnings),
        ),
    )
    return replace(script, warnings=(*script.warnings, *_kept_rows(script)))


def view_columns(
    path: str | Path,
    text: str,
    *,
    environ: Mapping[str, str] | None = None,
    secrets: Secrets = databricks_secret,
) -> Mapping[str, tuple[QueryColumn, ...]]:
    """Returns the columns of each view of the script `text`, by the view's name. Reads and raises as `load_script`."""
    loading, _, _ = _loaded(location_of(path), text, environ, secrets)
    return {view.name: view.relation.columns for view in loading.catalogue.views()}


def _loaded(
    path: str, text: str | None, environ: Mapping[str, str] | None, secrets: Secrets
) -> tuple[_Loading, tuple[Statement, ...], Settings]:
    base = folder_of(path)
    loading = _Loading(base, Substitution(environment() if environ is None else environ, base, secrets))
    statements = parse_script(_read(path) if text is None else text, path)
    statements = tuple(loading.substituted(s) if isinstance(s, SetOption) else s for s in statements)
    given = settings(statements)
    loading.lateness_ms, loading.idle_timeout_ms = given.lateness_ms, given.idle_timeout_ms
    loading.drops_nulls, loading.bad_records = given.drops_nulls, given.bad_records
    loading.statements = tuple(s for s in statements if isinstance(s, Insert))
    for statement in statements:
        loading.add(statement)
    return loading, statements, given


def _unused(lateness_ms: int, inserts: list[InsertPlan], tables: Sequence[Table]) -> Iterator[str]:
    if lateness_ms and not any(plan.windows for plan in inserts):
        yield f"SET '{ALLOW_LATENESS}' has no effect: no INSERT has rows that come when their window closes"
    read = {source.name for plan in inserts for source in plan.sources}
    for table in tables:
        if table.changes.change_semantics and table.name not in read:
            given = ", ".join(f"'bridge.{key}'" for key in table.changes.change_semantics)
            yield f"table {table.name}: {given} has no effect: no INSERT reads the table"


def _kept_rows(script: Script) -> Iterator[str]:
    """What SET 'bridge.state.closed-windows' cannot remove."""
    if not script.removes_closed:
        return
    for table in script.tables:
        readers = [plan for plan in script.inserts if any(s.name == table.name for s in plan.sources)]
        if not readers or all(plan.windows is None for plan in readers):
            continue
        other = next((plan.name for plan in readers if plan.windows is None), None)
        why = (
            "it is a user's Delta table"
            if table.topic is None
            else "its rows may be updated"
            if not table.topic.appends
            else f"INSERT {other} needs them again"
            if other is not None
            else None
        )
        if why is not None:
            yield f"SET '{CLOSED_WINDOWS}' removes no rows of `{table.name}`: {why}"


def _read(path: str) -> str:
    try:
        return read_text(path)
    except OSError as error:
        raise DefinitionError(f"{path}: the script cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DefinitionError(f"{path}: the script is not UTF-8 text") from None


class _Loading:
    """The statements of a script that are read so far: each one sees those before it, as in Flink."""

    def __init__(self, base: str, substitution: Substitution) -> None:
        self.base, self.substitution = base, substitution
        self.catalogue = Catalogue()
        self.lateness_ms = self.idle_timeout_ms = 0
        self.drops_nulls, self.bad_records = False, BadRecords.FAIL
        self.statements: tuple[Insert, ...] = ()
        self.inserts: list[InsertPlan] = []
        self.explained: list[InsertPlan | str] = []

    def add(self, statement: Statement) -> None:
        """Resolves a statement. Raises what `load_script` raises."""
        if isinstance(statement, CreateTable):
            self.catalogue.add(statement, self._table(statement))
        elif isinstance(statement, CreateView):
            view = plan_view(statement, self.catalogue, self._substitute(statement))
            self.catalogue.add(statement, view)
        elif isinstance(statement, Insert):
            self.inserts.append(
                plan_insert(
                    statement,
                    self.catalogue,
                    self._substitute(statement),
                    self.inserts,
                    self.lateness_ms,
                    self.statements,
                    drops_nulls=self.drops_nulls,
                    bad_records=self.bad_records,
                )
            )
        elif isinstance(statement, Explain):
            self.explained.append(self._explained(statement))

    def substituted(self, statement: SetOption) -> SetOption:
        """Substitutes references in the value of SET. Raises DefinitionError for a secret, since reports show it."""
        substitute = self._substitute(statement)
        return replace(statement, value=substitute(statement.value, statement.key.start))

    def _explained(self, statement: Explain) -> InsertPlan | str:
        substitute = self._substitute(statement)
        if isinstance(statement.explained, Insert):
            return plan_insert(statement.explained, self.catalogue, substitute, lateness_ms=self.lateness_ms)
        return plan_query(statement.explained, self.catalogue, substitute)

    def _substitute(self, statement: Statement) -> Substitute:
        def substitute(text: str, offset: int) -> str:
            where = str(statement.source.error("", offset)).removesuffix(": ")
            value = self.substitution(text, where) if "${" in text else text
            if isinstance(value, Secret):
                raise DefinitionError(
                    f"{where}: ${{file:...}} and ${{secret:...}} are allowed in WITH only, because logs and reports "
                    "show this value. Use ${env:...}"
                )
            return value

        return substitute

    def _table(self, statement: CreateTable) -> Table:
        source, ddl = statement.source, statement.ddl

        def substituted(key: str, value: str) -> str:
            at = statement.options.get(key, statement.name.start)
            return self.substitution(value, str(source.error(f"'{key}'", at)))

        options = {key: substituted(key, value) for key, value in ddl.options.items()}
        changes = {key: options.pop(key) for key in CHANGE_OPTIONS if key in options}
        try:
            table = resolve_table(replace(ddl, options=options), self.base, self.idle_timeout_ms)
            table = with_change_options(table, changes)
        except (OptionError, UnsupportedError) as error:
            raise _located(statement, error) from error
        left_out = tuple(
            f"column '{name}' AS PROCTIME() is left out: {_PROCTIME}" for name in statement.proctime
        )
        return replace(table, warnings=(*table.warnings, *left_out), proctime=statement.proctime)


def _located(statement: CreateTable, error: OptionError | UnsupportedError) -> DefinitionError:
    """Returns the same error at the option that its message starts with, else at the table's name."""
    message = str(error)
    at = next(
        (start for key, start in statement.options.items() if message.startswith(f"'{key}'")),
        statement.name.start,
    )
    located = str(statement.source.error(f"table `{statement.name.text}`: {message}", at))
    if isinstance(error, UnsupportedError):
        return UnsupportedError(located, error.what)
    return OptionError(located)

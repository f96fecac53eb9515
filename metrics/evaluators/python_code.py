"""python_code: a rule of your own, as a function."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import BaseModel, field_validator

from metrics.evaluators.base import BaseEvaluator, EvaluatorConfig, compared, placed
from metrics.evaluators.text import is_number, shown
from metrics.score import Score, UnscoredError

_BY_NAME = ("input_data", "field_path")
_FORM = "def rule(extracted, expected, input_data=None, field_path=None) that returns a number"


class PythonCodeError(RuntimeError):
    """The function raised; its own error is the cause."""


class PythonCodeConfig(EvaluatorConfig):
    """Options of `python_code`.

    Attributes:
        function: `function(extracted, expected, input_data=..., field_path=...)` gives a number. What it
            does not take of the two names is left out.
    """

    function: Any

    @field_validator("function")
    @classmethod
    def _is_rule(cls, function: Any) -> Any:
        if isinstance(function, str):
            raise ValueError(
                f"a function is needed, got the text {shown(function)}; in a file it is named by its import path, such "
                "as my_rules.py:rule, and never written out"
            )
        if not callable(function):
            raise ValueError(f"a function is needed, got {shown(function)}; write {_FORM}")
        try:
            inspect.signature(function).bind(None, None, **dict.fromkeys(_names(function)))
        except TypeError as error:
            raise ValueError(f"{_told(function)} cannot be called with two values: {error}; write {_FORM}") from None
        except ValueError:  # a function of the interpreter's own that does not say what it takes
            pass
        return function


class PythonCodeEvaluator(BaseEvaluator):
    """What a function of your own says: its number, cut to 0..1; True is 1 and False is 0.

    It is asked for every pair of values, also where one of them is not there (None, or `MISSING`). What is no number,
    NaN and infinity leave the result unscored, and so does an `UnscoredError` that the function raises to say why there
    is no number. Anything else that it raises is a fault of the metric: `PythonCodeError`, a RuntimeError, which stops
    a run.

    The version covers the function's source text and the values it was made with, not what it calls.

    >>> def close(extracted, expected, input_data=None, field_path=None):
    ...     return 1 - abs(extracted - expected) / 10
    >>> [PythonCodeEvaluator({"function": close}).evaluate(age, 30) for age in (30, 28, 20, 5)]
    [1.0, 0.8, 0.0, 0.0]
    >>> PythonCodeEvaluator({"function": "lambda a, b: 1"})
    Traceback (most recent call last):
    ValueError: python_code: function: a function is needed, got the text 'lambda a, b: 1'; in a file it is named by its
    import path, such as my_rules.py:rule, and never written out
    """

    alias: ClassVar[str] = "python_code"
    config_model: ClassVar[type[BaseModel]] = PythonCodeConfig

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(config)
        self._names = _names(self._function)
        self._identity = _identity(self._function)

    def options(self) -> dict[str, Any]:
        """The function by its name and a digest of its source text."""
        return {"function": self._identity}

    def score(
        self,
        extracted: Any,
        expected: Any,
        input_data: Mapping[str, Any] | None = None,
        field_path: str | None = None,
    ) -> Score:
        """The function's number.

        Raises:
            PythonCodeError: the function raised.
        """
        by_name = {"input_data": input_data, "field_path": field_path}
        try:
            said = self._function(extracted, expected, **{name: by_name[name] for name in self._names})
        except UnscoredError as error:
            return Score.unscored(placed(str(error) or "no number", field_path))
        except Exception as error:
            sentence = f"{_told(self._function)} raised {type(error).__name__}: {error}{_line(error)}"
            raise PythonCodeError(placed(sentence, field_path)) from error
        value = _in_range(said)
        if value is None:
            sentence = f"{_told(self._function)} gave {shown(said)}, not a finite number"
            return Score.unscored(placed(sentence, field_path))
        return Score(value, compared(extracted, expected, field_path))

    @property
    def _function(self) -> Callable[..., Any]:
        return cast(PythonCodeConfig, self.config).function


def _in_range(said: Any) -> float | None:
    """A number cut to 0..1, None for anything else."""
    if isinstance(said, bool | np.bool_):
        return float(said)
    if not is_number(said):
        return None
    try:
        number = float(said)
    except OverflowError:  # a whole number beyond the largest float
        return float(said > 0)
    except (TypeError, ValueError):
        return None
    return min(1.0, max(0.0, number)) if math.isfinite(number) else None


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Which of the two names the function takes; none where it does not say."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return _BY_NAME
    return tuple(
        name
        for name in _BY_NAME
        if name in parameters and parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    )


def _told(function: Any) -> str:
    return f"the function {getattr(function, '__qualname__', type(function).__qualname__)!r}"


def _line(error: BaseException) -> str:
    """Where the function raised: the innermost line of the error."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({Path(frames[-1].filename).name} line {frames[-1].lineno})" if len(frames) > 1 else ""


def _identity(function: Any) -> Any:
    """What tells this function from another, the same in every process: name, source text, values it was made with."""
    if isinstance(function, functools.partial):
        keywords = {name: _plain(value) for name, value in sorted(function.keywords.items())}
        return ["partial", _identity(function.func), [_plain(value) for value in function.args], keywords]
    if inspect.ismethod(function):
        return ["method", _identity(function.__func__), _plain(function.__self__)]
    if not inspect.isfunction(function):
        return ["object", _plain(function), _digest(type(function))]
    made_with = [_plain(cell.cell_contents) for cell in function.__closure__ or () if _is_filled(cell)]
    defaults = [_plain(value) for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items())]
    return [f"{function.__module__}.{function.__qualname__}", _digest(function), made_with, defaults]


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:  # not assigned yet
        return False
    return True


def _plain(value: Any) -> Any:
    """A value for the version: plain data as it is, of an object its class and attributes."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if inspect.isroutine(value) or isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return [f"{type(value).__module__}.{type(value).__qualname__}", {name: _repr(v) for name, v in _vars(value)}]


def _vars(value: Any) -> list[tuple[str, Any]]:
    return sorted(getattr(value, "__dict__", {}).items())


def _repr(value: Any) -> str:
    """A text of a value without its address in memory, which is another one in every process."""
    plain = value is None or isinstance(value, str | int | float | bool | list | tuple | dict)
    return repr(value) if plain else type(value).__qualname__


def _digest(thing: Any) -> str:
    """Of the source text; of the compiled code where there is none."""
    try:
        text = inspect.getsource(thing).encode()
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        text = (
            repr(type(thing)).encode()
            if code is None
            else code.co_code + repr((code.co_consts, code.co_names)).encode()
        )
    return hashlib.sha256(text).hexdigest()[:16]

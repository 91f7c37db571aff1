"""One format, one file. Modules whose name starts with `_` are shared reading helpers.

Adapters of your own may lie in any folder that `ETL_ADAPTERS` names: they are loaded as if they were here.
"""

from os import environ, pathsep  # noqa: TID251  (processes that read for a command load adapters, and no command)

__path__ += [folder for folder in environ.get("ETL_ADAPTERS", "").split(pathsep) if folder]

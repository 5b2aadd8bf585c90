"""Write all of them anew."""

from golden import FOLDER, GOLDEN

for name, make in GOLDEN.items():
    (FOLDER / name).write_text(make(), encoding="utf-8")

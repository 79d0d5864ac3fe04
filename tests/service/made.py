"""Rows of made-up shops."""

import random


def rows(count, seed=0, target="bought"):
    """Whether something was bought depends on the city and the price; the amount, too."""
    made, chance = [], random.Random(seed)
    for _ in range(count):
        city, price = chance.choice(["Paris", "Rome", "Oslo"]), chance.gauss(0.0, 1.0)
        score = (city == "Paris") * 2.0 - price + chance.gauss(0.0, 0.5)
        made.append({"city": city, "price": price, target: score > 0.5 if target == "bought" else score})
    return made


def inputs(of):
    """The same without targets."""
    return [{name: value for name, value in row.items() if name in ("city", "price")} for row in of]

"""A function with more than twenty paths."""


def grade(a: int, b: int, c: int, d: int) -> str:
    if a > 1 and b > 1:
        if c > 1:
            return "a"
        elif c > 2 or d > 2:
            return "b"
        elif c > 3:
            return "c"
    elif a > 2:
        for each in range(b):
            if each > 3:
                return "d"
            elif each > 4:
                return "e"
            elif each > 5:
                return "f"
    elif a > 3:
        while b:
            b -= 1
            if b == 3:
                return "g"
            elif b == 4:
                return "h"
            elif b == 5:
                return "i"
            elif b == 6:
                return "j"
    elif a > 4:
        try:
            return str(a / b)
        except ZeroDivisionError:
            return "k"
        except OverflowError:
            return "l"
    elif a > 5:
        return "m" if c else "n"
    elif a > 6:
        return "o"
    elif a > 7:
        return "p"
    return "q"

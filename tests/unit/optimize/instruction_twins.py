"""What the instructions of `inftda.optimize.instructions` do, in plain Python."""


def larger(x, at, level):
    return sum(int(x[int(at) + k] > level) << k for k in range(8))


def sum_larger(x, at, level):
    found = [int(value) for value in x[int(at) : int(at) + 8] if value > level]
    return len(found), sum(found)


def shift_apart(x, at, lower, upper, up, down):  # noqa: PLR0917 - as the instruction
    bits = 0
    for k in range(8):
        value = int(x[int(at) + k])
        bits |= int(lower < value <= upper) << k
        x[int(at) + k] = max(0, value + (up if value > upper else down))
    return bits


def put_places(bits, add, out, at):
    places = [k for k in range(8) if int(bits) >> k & 1]
    out[int(at) : int(at) + 8] = [place + add for place in (places + [0] * 8)[:8]]
    return at + type(at)(len(places))


def bit_length(number):
    return int(number).bit_length()


TWINS = {
    function.__name__: function
    for function in (larger, sum_larger, shift_apart, put_places, bit_length)
}

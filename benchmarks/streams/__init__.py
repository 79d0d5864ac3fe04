"""How good one pass over a stream is: predict, then learn, beside baselines and peers.

    stream        rows of numbers and categories, and their labels
    files         streams from files of one's own
    made          streams that are drawn here
    contenders    what predicts a stream, with what it costs: ourselves and the baselines
    linear        linear peers: River, scikit-learn, Vowpal Wabbit
    bandits       bayesianbandits, linear too
    trees         forests: River, CapyMOA
    late          all of them where labels come late
    scores        log loss, accuracy and calibration of what was predicted, and goals
    table         all that, printed and as JSON
    picture       log loss along each stream

``python -m benchmarks.streams --help``.
"""

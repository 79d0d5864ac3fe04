"""Does it happen? The claims of six papers, each judged by theory and by simulation of the production learners.

    claims            what a claim is, and when it holds
    ensembles         many replicas of production learners, in parallel, from one seed
    figures           the papers' figures as PNG and CSV
    opper1998         Opper 1998, "A Bayesian approach to on-line learning"
    deoliveira2007    de Oliveira and Alamino 2007, "Performance of the Bayesian online algorithm for the perceptron"
    barkai1995        Barkai, Seung and Sompolinsky 1995, "On-line learning of dichotomies"
    buschermoehle2013 Buschermoehle, Schoenke, Rosemann and Brockmann 2013, "The incremental risk functional"
    wang2007          Wang 2007, "Variational Bayesian approach to canonical correlation analysis"
    xu                Xu 2007, "Bayesian Ying Yang learning"

``python -m bayou.papers list``, ``python -m bayou.papers run opper1998 --figure 2``. No production code imports it, and
it runs production code alone: a wrong likelihood breaks a unit test, and a learning curve.
"""

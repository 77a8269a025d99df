"""One warning class for each thing a user may want to silence."""


class TiedModesWarning(UserWarning):
    """The cut between kept and discarded modes splits a multiple eigenvalue.

    So the coarse space is not unique.
    """


class SingularDegreeWarning(UserWarning):
    """A diagonal block of the Laplacian is singular, and the pseudo-inverse was taken."""


class SingularProblemWarning(UserWarning):
    """The problem has no unique answer, or one that rounding decides."""

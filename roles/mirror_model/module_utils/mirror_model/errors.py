"""The one error of the model."""


class ModelError(ValueError):
    """The inventory cannot be turned into a configuration.

    The message names the variable and the cure and never quotes a secret.
    """

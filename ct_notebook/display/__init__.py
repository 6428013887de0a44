"""A run comes in; what people look at goes out: a live panel or line, and the static result that stays."""

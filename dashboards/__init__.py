"""The Dash app: pages over results, figures, and the frame around them."""

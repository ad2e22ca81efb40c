def write_page(report, folder):
    pass
